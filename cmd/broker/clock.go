//go:build !(skewedclock && unix)

package broker

import "platter/io/clock"

// machineClock is the time that the broker goes by.
func machineClock() clock.Clock { return clock.Real{} }
