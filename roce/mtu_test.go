package roce_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

func TestPathMTU(t *testing.T) {
	for m, bytes := range map[roce.PathMTU]int{1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096} {
		require.True(t, m.Valid())
		require.Equal(t, bytes, m.Bytes())
		got, err := roce.PathMTUFor(bytes)
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
	for _, m := range []roce.PathMTU{0, 6, 255} {
		require.False(t, m.Valid())
		require.Zero(t, m.Bytes())
	}
	require.Equal(t, "1024", roce.MTU1024.String())
	require.Equal(t, "PathMTU(9)", roce.PathMTU(9).String())
	for _, bytes := range []int{-1, 0, 1, 255, 257, 1500, 8192} {
		_, err := roce.PathMTUFor(bytes)
		require.ErrorIs(t, err, roce.ErrMTU)
	}
	_, err := roce.PathMTUFor(1500)
	require.EqualError(t, err, "roce: path MTU 1500: give 256, 512, 1024, 2048 or 4096")
}

func TestDeviceMTU(t *testing.T) { // §1.12
	for _, c := range []struct {
		netdev int
		rxe    int
		cm     int
	}{
		{1500, 1024, 1024},
		{9000, 4096, 4096},
		{4200, 4096, 4096},
		{4192, 4096, 4096},
		{4191, 4096, 2048},
		{4176, 4096, 2048},
		{4175, 2048, 2048},
		{352, 256, 256},
		{351, 256, 0},
		{335, 0, 0},
		{-5, 0, 0},
	} {
		for want, f := range map[*int]func(int) (roce.PathMTU, error){&c.rxe: roce.RxePortMTU, &c.cm: roce.CMMTU} {
			m, err := f(c.netdev)
			require.Equal(t, *want, m.Bytes(), "device MTU %d", c.netdev)
			if *want == 0 {
				require.ErrorIs(t, err, roce.ErrMTU)
			} else {
				require.NoError(t, err)
			}
		}
	}
	_, err := roce.CMMTU(300)
	require.EqualError(t, err, "roce: network device MTU 300: at least 352 is needed to carry a path MTU of 256; raise it on the device")
}
