//go:build unix

package host

import "golang.org/x/sys/unix"

// mapPages maps size bytes of anonymous memory and tells how to unmap them.
func mapPages(size int) ([]byte, func() error, error) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, err
	}
	return b, func() error { return unix.Munmap(b) }, nil
}
