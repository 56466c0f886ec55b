//go:build unix

package nic

import "golang.org/x/sys/unix"

// pages maps size bytes outside the Go heap, or takes them from it when the
// system has none, and returns how to give them back.
func pages(size int) (b []byte, free func()) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return make([]byte, size), func() {}
	}
	return b, func() { _ = unix.Munmap(b) }
}
