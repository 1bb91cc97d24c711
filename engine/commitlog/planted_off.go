//go:build !plantedbug

package commitlog

const plantedByTag = plantedNone
