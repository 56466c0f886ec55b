//go:build !linux

package nic

// yield has no portable call; waiters here yield to goroutines only.
func yield() {}
