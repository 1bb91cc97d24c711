//go:build plantedbug

package commitlog

// plantedByTag is a bug in the whole program, which the suite of real kills has to find.
const plantedByTag = plantedLoseLast
