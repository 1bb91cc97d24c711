//go:build !unix

package conn

// DescriptorLimit: there is none that one could ask for; Windows grants millions of handles.
func DescriptorLimit() int { return 1 << 16 }
