//go:build !unix

package host

import (
	"math"
	"os"
	"unsafe"

	"github.com/gohixl/hixl/device"
)

// mapPages cuts page-aligned memory from the Go heap where there is no mmap.
func mapPages(size int) ([]byte, func() error, error) {
	page := os.Getpagesize()
	if size > math.MaxInt-page {
		return nil, nil, device.ErrSize
	}
	b := make([]byte, size+page)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (page - 1)
	return b[skip : skip+size : skip+size], func() error { return nil }, nil
}
