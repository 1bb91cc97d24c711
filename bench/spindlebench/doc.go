// Package spindlebench measures what engine/spindle is for: many readers of cold data at once, and appends to many
// partitions at once, on a modelled disk (io/hddsim, in virtual time: exact, and the same at every run) or on a real
// directory, with the engine's own logs, lane and sockets.
//
// A modelled figure is the model's: it is to be called so wherever it is shown.
package spindlebench
