package pages

import (
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestMap(t *testing.T) {
	for _, size := range []int{1, 4095, 4096, 100_000, 512 << 10, 1 << 20, 3<<20 + 7} {
		b, unmap, err := Map(size)
		require.NoError(t, err)
		require.Len(t, b, size)
		require.Equal(t, size, cap(b), "what lies behind is not the caller's")
		require.Zero(t, uintptr(unsafe.Pointer(&b[0]))%uintptr(os.Getpagesize()))
		for i := range b {
			if b[i] != 0 {
				t.Fatal("not zeroed")
			}
			b[i] = 1
		}
		require.NoError(t, unmap())
	}
}
