//go:build !unix

package pages

import (
	"errors"
	"math"
	"os"
	"unsafe"
)

// Map cuts size bytes, at least 1, page-aligned from the Go heap where there is
// no mmap.
func Map(size int) (b []byte, unmap func() error, err error) {
	page := os.Getpagesize()
	if size > math.MaxInt-page {
		return nil, nil, errors.New("pages: size out of range")
	}
	whole := make([]byte, size+page)
	skip := -int(uintptr(unsafe.Pointer(&whole[0]))) & (page - 1)
	return whole[skip : skip+size : skip+size], func() error { return nil }, nil
}
