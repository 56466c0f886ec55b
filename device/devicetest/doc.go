// Package devicetest helps to test memories and what is built on them.
//
// [Run] is the conformance suite: every implementation of device.Memory passes
// it. [Late] is a memory without a direct view that finishes its work late, in
// pieces and out of order, as far as the rules of package device allow, driven
// by a seed and virtual time. What works on Late does not lean on host memory's
// being done at once.
//
// Only tests import this package. It starts no goroutines but those of Run's
// contention check.
package devicetest
