package crc

import (
	"math/rand/v2"
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// guarded returns memory between two pages that must not be touched.
func guarded(t *testing.T, size int) []byte {
	t.Helper()
	page := syscall.Getpagesize()
	b, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(b)) })
	inner := b[page : page+size]
	require.NoError(t, syscall.Mprotect(inner, syscall.PROT_READ|syscall.PROT_WRITE))
	return inner
}

// sealed returns b with writing forbidden.
func sealed(t *testing.T, b []byte) []byte {
	t.Helper()
	require.NoError(t, syscall.Mprotect(b, syscall.PROT_READ))
	return b
}

// No kernel touches a byte outside source and destination: they lie right at
// the first and the last byte of pages whose neighbours fault. A source is
// never written.
func TestKernelsStayInside(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	size := 2 * syscall.Getpagesize()
	src, dst := guarded(t, size), guarded(t, size)
	copy(src, randomBytes(rand.New(rand.NewPCG(4, 0)), size))
	sealed(t, src)
	eachKernel(t, func(t *testing.T, k kernel) {
		for n := 1; n <= 1100; n++ {
			head, tail := src[:n:n], src[size-n:]
			for _, p := range [][]byte{head, tail} {
				want := oracle(7, p)
				require.Equal(t, want, k.over(7, p), "%d bytes", n)
				require.Equal(t, want, k.copyOver(dst[:n:n], p, 7), "%d bytes to the start", n)
				require.Equal(t, p, dst[:n])
				require.Equal(t, want, k.copyOver(dst[size-n:], p, 7), "%d bytes to the end", n)
				require.Equal(t, p, dst[size-n:])
			}
		}
	})
}

func TestGuardsBite(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	size := syscall.Getpagesize()
	b := guarded(t, size)
	outside := b[:size+1]
	require.Panics(t, func() { Update(0, outside) })
}
