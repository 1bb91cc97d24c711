//go:build race

package uring

// raceEnabled: sync.Pool drops items at random then, so allocations cannot be counted.
const raceEnabled = true
