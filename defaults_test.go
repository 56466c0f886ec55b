package hixl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
)

// What nobody chooses must suit every peer (docs/bugs.md): A1, RNR is retried
// without end; A8, the RNR timer is not so short that a software peer does nothing
// but send NAKs; A11, the path MTU is what both can do.
func TestConnectionDefaults(t *testing.T) {
	small := at("127.92.40.1")
	small.MTU = 1024
	a, b := newEnd(t, small, hixl.QPConfig{}), newEnd(t, at("127.92.40.2"), hixl.QPConfig{})
	require.Greater(t, b.qp.Address().MTU, 1024)
	connect(t, a, b, hixl.ConnectOptions{})
	for _, e := range []*end{a, b} {
		q := e.qp.Query()
		require.EqualValues(t, 7, q.RNRRetry)
		require.GreaterOrEqual(t, q.MinRNRTimer, uint8(12))
		require.Equal(t, 1024, q.PathMTU.Bytes())
	}
}
