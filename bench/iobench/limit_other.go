//go:build !unix

package iobench

// descriptorLimit: there is none that one could ask for.
func descriptorLimit() int { return 1 << 16 }
