//go:build !linux

package iobench

import "runtime"

func kernel() string { return runtime.GOOS }

func device(string) string { return "unknown" }
