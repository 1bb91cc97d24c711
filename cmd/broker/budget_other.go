//go:build !unix

package broker

// descriptorLimit: there is none that one could ask for; Windows grants millions of handles.
func descriptorLimit() int { return 1 << 16 }
