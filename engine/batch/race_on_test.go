//go:build race

package batch

// raceEnabled: sync.Pool drops items at random then, so allocations cannot be counted.
const raceEnabled = true
