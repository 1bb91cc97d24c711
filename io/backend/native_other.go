//go:build !linux || portable

package backend

func native() []candidate { return nil }
