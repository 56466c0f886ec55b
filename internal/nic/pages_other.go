//go:build !unix

package nic

// pages takes size bytes from the Go heap where there is no mmap.
func pages(size int) (b []byte, free func()) { return make([]byte, size), func() {} }
