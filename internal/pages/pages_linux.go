package pages

import (
	"math"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// huge is the size of a huge page, on amd64 and on arm64 with 4 KiB pages.
	huge = 2 << 20
	// worthHuge is the size from which memory is rounded up to huge pages: a
	// packet copy then finds its translations cached, which counts most in a
	// virtual machine, where each missing one costs two page walks.
	worthHuge = huge / 2
)

// Map returns size bytes, at least 1, and what unmaps them.
func Map(size int) (b []byte, unmap func() error, err error) {
	if size < worthHuge || size > math.MaxInt-2*huge {
		return mmap(size)
	}
	rounded := (size + huge - 1) &^ (huge - 1)
	whole, unmap, err := mmap(rounded + huge)
	if err != nil {
		return mmap(size)
	}
	skip := -int(uintptr(unsafe.Pointer(&whole[0]))) & (huge - 1)
	_ = unix.Madvise(whole[skip:skip+rounded], unix.MADV_HUGEPAGE) // a hint
	return whole[skip : skip+size : skip+size], unmap, nil
}

func mmap(size int) ([]byte, func() error, error) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, err
	}
	return b, func() error { return unix.Munmap(b) }, nil
}
