package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// A file of recorded runs is text, a run behind the other:
//
//	seed 17
//	> {"kind":"send",...}     a step, in JSON
//	< # 0                     what was said on it
//	< p0 create: 0 z+1 "R/a"

// recorded is one run.
type recorded struct {
	seed  string
	steps []Step
	lines []string
}

func record(o *options) error {
	t, stop, err := o.real()
	if err != nil {
		return err
	}
	defer stop()
	f, err := os.Create(o.out)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for i := range uint64(o.n) {
		steps := generate(o.from + i)
		lines, err := t.play(steps)
		if err != nil {
			return err
		}
		fmt.Fprintln(w, "seed", o.from+i)
		for _, s := range steps {
			text, err := json.Marshal(s)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "> %s\n", text)
		}
		for _, line := range lines {
			fmt.Fprintf(w, "< %s\n", line)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// readRecorded parses a file of runs.
func readRecorded(r io.Reader) ([]recorded, error) {
	var out []recorded
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		mark, rest, _ := strings.Cut(sc.Text(), " ")
		if mark == "seed" {
			out = append(out, recorded{seed: rest})
			continue
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("%q before the first seed", sc.Text())
		}
		x := &out[len(out)-1]
		switch mark {
		case ">":
			var s Step
			if err := json.Unmarshal([]byte(rest), &s); err != nil {
				return nil, fmt.Errorf("seed %s: %w", x.seed, err)
			}
			x.steps = append(x.steps, s)
		case "<":
			x.lines = append(x.lines, rest)
		default:
			return nil, fmt.Errorf("seed %s: a line that begins with %q", x.seed, mark)
		}
	}
	return out, sc.Err()
}
