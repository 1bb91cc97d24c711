package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// checkValue tells whether a value is of its type and in its range; nil inRange: everything is.
func checkValue(t Type, inRange func(string) error, value string) error {
	var err error
	switch t {
	case Boolean:
		_, err = parseBool(value)
	case Short:
		_, err = parseInt(value, math.MinInt16, math.MaxInt16)
	case Int:
		_, err = parseInt(value, math.MinInt32, math.MaxInt32)
	case Long:
		_, err = parseInt(value, math.MinInt64, math.MaxInt64)
	case Double:
		_, err = strconv.ParseFloat(value, 64)
		if err != nil {
			err = fmt.Errorf("not a number")
		}
	}
	if err != nil || inRange == nil {
		return err
	}
	if t == List {
		for _, v := range splitList(value) {
			if err := inRange(v); err != nil {
				return err
			}
		}
		return nil
	}
	return inRange(value)
}

// parseBool takes what Kafka takes: true and false in any case, nothing else.
func parseBool(v string) (bool, error) {
	switch strings.ToLower(v) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("not a boolean: only true and false are")
}

func parseInt(v string, low, high int64) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("not a whole number")
	}
	if n < low || n > high {
		return 0, fmt.Errorf("out of range: from %d to %d", low, high)
	}
	return n, nil
}

// splitList cuts a comma-separated list; empty entries do not count.
func splitList(v string) []string {
	var out []string
	for _, s := range strings.Split(v, ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// parseValid reads the "valid" cell of a table: alternatives by comma ("-1, 1..9"), each one value or a
// range with an open end; or a choice of words ("a / b").
func parseValid(t Type, valid string) (func(string) error, error) {
	if valid == "" {
		return nil, nil
	}
	if strings.Contains(valid, " / ") {
		words := strings.Split(valid, " / ")
		return func(v string) error {
			if !slices.Contains(words, v) {
				return fmt.Errorf("not one of %s", strings.Join(words, ", "))
			}
			return nil
		}, nil
	}
	var spans []span
	for _, part := range strings.Split(valid, ", ") {
		s, err := parseSpan(part)
		if err != nil {
			return nil, err
		}
		spans = append(spans, s)
	}
	return func(v string) error {
		for _, s := range spans {
			if s.holds(t, v) {
				return nil
			}
		}
		return fmt.Errorf("out of range: %s", valid)
	}, nil
}

// span is one range, both ends included. Whole numbers are compared as such: a float64 cannot tell
// the largest ones apart.
type span struct {
	low, high       int64
	lowF, highF     float64
	openLow, openUp bool
}

func parseSpan(s string) (span, error) {
	low, high, isRange := strings.Cut(s, "..")
	if !isRange {
		high = low
	}
	var p span
	var err error
	if p.openLow = low == ""; !p.openLow {
		if p.lowF, err = strconv.ParseFloat(low, 64); err != nil {
			return span{}, fmt.Errorf("bad range %q", s)
		}
		p.low = int64(p.lowF)
	}
	if p.openUp = high == ""; !p.openUp {
		if p.highF, err = strconv.ParseFloat(high, 64); err != nil {
			return span{}, fmt.Errorf("bad range %q", s)
		}
		p.high = int64(p.highF)
	}
	return p, nil
}

func (p span) holds(t Type, v string) bool {
	if t == Double {
		f, err := strconv.ParseFloat(v, 64)
		return err == nil && !math.IsNaN(f) && (p.openLow || f >= p.lowF) && (p.openUp || f <= p.highF)
	}
	n, err := strconv.ParseInt(v, 10, 64)
	return err == nil && (p.openLow || n >= p.low) && (p.openUp || n <= p.high)
}
