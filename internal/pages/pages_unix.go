//go:build unix && !linux

package pages

import "golang.org/x/sys/unix"

// Map returns size bytes, at least 1, and what unmaps them.
func Map(size int) (b []byte, unmap func() error, err error) {
	b, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, err
	}
	return b, func() error { return unix.Munmap(b) }, nil
}
