//go:build unix

package engine_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// mapMemory returns memory that the garbage collector does not know.
func mapMemory(t testing.TB, n int) []byte {
	t.Helper()
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Munmap(b) })
	return b
}
