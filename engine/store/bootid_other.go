//go:build !linux && !darwin

package store

// kernelBootID is unknown here: every unclean start is taken for one after a power cut.
func kernelBootID() string { return "" }
