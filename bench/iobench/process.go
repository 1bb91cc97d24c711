package iobench

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// startProcess runs the hidden `platter bench bare --drain`, which prints its address and serves until its
// input ends.
func startProcess(exe string) (*receiver, error) {
	cmd := exec.Command(exe, "bench", "bare", "--drain")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := func() {
		in.Close()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return nil, fmt.Errorf("the receiver did not start: %w", err)
	}
	return &receiver{addr: strings.TrimSpace(line), stop: stop}, nil
}
