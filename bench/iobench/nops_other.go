//go:build !linux || !(amd64 || arm64 || loong64 || ppc64le || riscv64 || s390x) || portable || nouring

package iobench

var errNoRing = skip("io_uring is not in this build")

func newRingNops(*based) (load, error) { return nil, errNoRing }

func newBareNops(int) (load, error) { return nil, errNoRing }
