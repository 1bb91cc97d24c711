//go:build !unix

package iobench

// DescriptorLimit: there is none that one could ask for.
func DescriptorLimit() int { return 1 << 16 }
