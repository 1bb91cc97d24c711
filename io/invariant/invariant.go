// Package invariant is assertions that stay on in production. A broken one is a bug of ours, not an
// operating error and not corruption: the process stops at once, before it can do harm with a state
// that it does not understand, and says both values.
//
// Equal, AtMost and AtLeast cost a comparison as long as they hold. Check evaluates and boxes its arguments
// each time; keep it off the hottest paths.
package invariant

import (
	"cmp"
	"fmt"
)

// Violation is what a broken invariant panics with.
type Violation string

func (v Violation) Error() string { return "invariant violated: " + string(v) }

// Check panics with the formatted message when cond is false. The message names what must hold and
// both values.
func Check(cond bool, format string, args ...any) {
	if !cond {
		panic(Violation(fmt.Sprintf(format, args...)))
	}
}

// Equal panics when got is not want.
func Equal[T comparable](got, want T, what string) {
	if got != want {
		violated(what, got, "must be", want)
	}
}

// AtMost panics when got is above most.
func AtMost[T cmp.Ordered](got, most T, what string) {
	if got > most {
		violated(what, got, "must be at most", most)
	}
}

// AtLeast panics when got is below least.
func AtLeast[T cmp.Ordered](got, least T, what string) {
	if got < least {
		violated(what, got, "must be at least", least)
	}
}

//go:noinline
func violated(what string, got any, relation string, want any) {
	panic(Violation(fmt.Sprintf("%s is %v, %s %v", what, got, relation, want)))
}
