//go:build skewedclock && unix

package broker

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"platter/io/clock"
)

// ClockVariable says how wrong the clock is, in builds that tests of clusters make: seconds ahead, and seconds that
// it counts in each real one, separated by a space.
const ClockVariable = "PLATTER_SKEWED_CLOCK"

// clockJump is how far SIGUSR1 sets it back, and SIGUSR2 forward.
const clockJump = 10 * time.Minute

// machineClock is a wrong one.
func machineClock() clock.Clock {
	var seconds, rate float64 = 0, 1
	if v := os.Getenv(ClockVariable); v != "" {
		if _, err := fmt.Sscan(v, &seconds, &rate); err != nil {
			panic(fmt.Sprintf("%s=%s: %v", ClockVariable, v, err))
		}
	}
	c := clock.NewSkewed(clock.Real{}, time.Duration(seconds*float64(time.Second)), rate)
	jumps := make(chan os.Signal, 8)
	signal.Notify(jumps, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for s := range jumps {
			if s == syscall.SIGUSR1 {
				c.Jump(-clockJump)
			} else {
				c.Jump(clockJump)
			}
		}
	}()
	return c
}
