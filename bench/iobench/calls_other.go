//go:build !linux

package iobench

func ioCounts() (reads, writes int64, ok bool) { return 0, 0, false }
