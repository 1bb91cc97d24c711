//go:build !unix && !windows

package disk

func platformKind(error) error { return nil }
