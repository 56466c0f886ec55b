//go:build race

package nic_test

// The race detector makes a seed some ten times slower; the interleavings it
// looks for are not in a single-threaded simulation anyway.
const defaultSeeds = 60
