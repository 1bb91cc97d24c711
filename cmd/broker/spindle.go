package broker

import (
	"context"
	"time"

	"platter/coord/config"
	"platter/engine/segment"
	"platter/engine/spindle"
	"platter/engine/store"
	"platter/io/profile"
)

// careFor puts the schedule of each device between the store and the files. Settings override what suits the device.
func (b *Broker) careFor() *spindle.Set {
	c := b.o.Config
	memory := spindle.MemoryDefault(b.fs)
	override(&memory, c.Int64("spindle.cold.memory.bytes"))
	var dirs []spindle.Dir
	for _, path := range c.List("log.dirs") {
		p := b.profiles.of(path)
		dirs = append(dirs, spindle.Dir{Path: path, Device: b.profiles.device(p), Params: spindleParams(c, spindle.Suits(p.Defaults(), memory))})
	}
	set := spindle.New(b.fs, b.clock, dirs)
	b.metrics.WatchSpindles(set.Stats)
	return set
}

// startDirtyWatch looks after the kernel's dirty budget until the broker stops.
func (b *Broker) startDirtyWatch() {
	stop := make(chan struct{})
	go b.spindles.Watch(stop, b.o.Log.With("part", "disks"))
	b.atStop("the watch on the dirty budget", func(context.Context) error { close(stop); return nil })
}

// spindleParams is p as the settings want it.
func spindleParams(c *config.Broker, p spindle.Params) spindle.Params {
	if v, _ := c.Value("spindle.cold.reads"); v == "off" {
		p.Cold = false
	}
	if v, _ := c.Value("spindle.cold.way"); v != "auto" {
		p.Buffers = v == "buffers"
	}
	override(&p.Lane.RunBytes, c.Int64("spindle.cold.run.bytes"))
	override(&p.Lane.FirstBytes, c.Int64("spindle.cold.first.bytes"))
	override(&p.Lane.Depth, c.Int("spindle.cold.depth"))
	override(&p.Lane.SharePercent, c.Int("spindle.cold.share.percent"))
	override(&p.Lane.TurnMax, millis(c.Int64("spindle.cold.turn.max.ms")))
	override(&p.Lane.CloseBytes, c.Int64("spindle.cold.close.bytes"))
	override(&p.WriteBehindBytes, c.Int64("spindle.write.behind.bytes"))
	override(&p.DirtyRunBytes, c.Int64("spindle.dirty.run.bytes"))
	override(&p.CutBytes, c.Int64("spindle.delete.step.bytes"))
	override(&p.CutPause, millis(c.Int64("spindle.delete.pause.ms")))
	return p
}

// suits is how logs of a data directory grow ahead, and are loaded.
func (b *Broker) suits(dir string) store.DirParams {
	d := b.profiles.of(dir).Defaults()
	return store.DirParams{Growth: growth(b.o.Config, d), RecoveryThreads: d.RecoveryThreads}
}

func growth(c *config.Broker, d profile.Defaults) segment.Growth {
	g := segment.Growth{FirstBytes: d.GrowFirstBytes, MaxBytes: d.GrowMaxBytes}
	override(&g.FirstBytes, c.Int64("spindle.grow.first.bytes"))
	override(&g.MaxBytes, c.Int64("spindle.grow.max.bytes"))
	g.FirstBytes = min(g.FirstBytes, max(g.MaxBytes, 1))
	return g
}

// override sets what a setting says: 0 leaves it to the device, -1 is none.
func override[T int | int64 | time.Duration](to *T, value T) {
	if value > 0 {
		*to = value
	} else if value < 0 {
		*to = 0
	}
}
