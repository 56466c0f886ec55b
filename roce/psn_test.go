package roce_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gohixl/hixl/roce"
)

func TestPSN(t *testing.T) { // §0
	for _, c := range []struct {
		a, b roce.PSN
		d    int32
	}{
		{0, 0, 0},
		{1, 0, 1},
		{0, 1, -1},
		{0, 0xFFFFFF, 1},
		{0xFFFFFF, 0, -1},
		{0x7FFFFF, 0, 0x7FFFFF},
		{0x800000, 0, -0x800000},
		{0x000100, 0xFFFF00, 0x200},
	} {
		require.Equal(t, c.d, c.a.Sub(c.b), "%#x - %#x", c.a, c.b)
		require.Equal(t, c.a, c.b.Add(int(c.d)), "%#x + %#x", c.b, c.d)
		require.Equal(t, c.d < 0, c.a.Before(c.b))
	}
}

func TestPSNProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := roce.PSN(rapid.Uint32Range(0, 1<<24-1).Draw(t, "a"))
		n := rapid.IntRange(-1<<23, 1<<23-1).Draw(t, "n")
		b := a.Add(n)
		require.LessOrEqual(t, b, roce.PSNMask)
		require.Equal(t, int32(n), b.Sub(a))
		require.Equal(t, a, b.Add(-n))
	})
}
