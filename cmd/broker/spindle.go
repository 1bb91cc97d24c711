package broker

import (
	"path/filepath"
	"time"

	"platter/coord/config"
	"platter/engine/spindle"
)

// careFor puts the schedule of each device between the store and the files. Its settings override what suits the
// device.
func (b *Broker) careFor() *spindle.Set {
	c := b.o.Config
	memory := spindle.MemoryDefault(b.fs)
	if n := c.Int64("spindle.cold.memory.bytes"); n > 0 {
		memory = n
	}
	var dirs []spindle.Dir
	for _, path := range c.List("log.dirs") {
		dirs = append(dirs, spindle.Dir{Path: path, Device: filepath.Clean(path), Params: spindleParams(c, spindle.Rotational(memory))})
	}
	return spindle.New(b.fs, b.clock, dirs)
}

// spindleParams is p as the settings want it.
func spindleParams(c *config.Broker, p spindle.Params) spindle.Params {
	if v, _ := c.Value("spindle.cold.reads"); v == "off" {
		p.Cold = false
	}
	override(&p.Lane.RunBytes, c.Int64("spindle.cold.run.bytes"))
	override(&p.Lane.FirstBytes, c.Int64("spindle.cold.first.bytes"))
	override(&p.Lane.Depth, c.Int("spindle.cold.depth"))
	override(&p.Lane.SharePercent, c.Int("spindle.cold.share.percent"))
	override(&p.Lane.TurnMax, time.Duration(c.Int64("spindle.cold.turn.max.ms"))*time.Millisecond)
	return p
}

// override sets what a setting says; 0 leaves it to the device's profile.
func override[T int | int64 | time.Duration](to *T, value T) {
	if value > 0 {
		*to = value
	}
}
