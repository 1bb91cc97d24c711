package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"platter/tools/zkwire"
)

// start is how long after a process's start its first answers came.
type start struct{ Session, Read, Write time.Duration }

// firstAnswers connects again and again, from began on, until a session, a read and a write have been answered.
// ended, where it is not nil, tells that the process has ended.
func firstAnswers(addr string, began time.Time, ended <-chan error) (start, error) {
	// A request that reaches Apache's server between its bind and its readiness can go unanswered: try often.
	const hello, limit = 150 * time.Millisecond, 60 * time.Second
	for time.Since(began) < limit {
		select {
		case err := <-ended:
			return start{}, fmt.Errorf("the server has ended: %w", err)
		default:
		}
		c, err := zkwire.DialClient(addr, 10*time.Second, hello)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		s := start{Session: time.Since(began)}
		r, err := c.Do(zkwire.OpGetData, zkwire.PathWatch("/", false))
		if err != nil || r.Err != 0 {
			c.NC.Close()
			continue
		}
		s.Read = time.Since(began)
		if _, err = c.Do(zkwire.OpCreate, zkwire.Create("/zkload-startup", nil, 1)); err != nil {
			c.NC.Close()
			continue
		}
		s.Write = time.Since(began)
		c.End()
		return s, nil
	}
	return start{}, errors.New("no answer within 60 s")
}

func startup(o *options) error {
	if len(o.rest) == 0 {
		return errors.New("startup needs -- COMMAND")
	}
	cmd := exec.Command(o.rest[0], o.rest[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	s, err := firstAnswers(o.addr, began, ended)
	if err == nil {
		fmt.Printf("ms to the session %.1f, the first read %.1f, the first write %.1f; %.1f MB resident\n", ms(s.Session), ms(s.Read), ms(s.Write),
			float64(residentBytes(cmd.Process.Pid))/1e6)
	}
	_ = cmd.Process.Kill()
	return err
}
