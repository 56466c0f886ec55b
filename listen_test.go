package hixl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
)

// Accept does not wait for a peer to say that it cannot accept any.
func TestAcceptRefusesItsOptionsAtOnce(t *testing.T) {
	f := newFabric(t, 1, good)
	valid := f.hosts[0].config()
	for says, o := range map[string]hixl.AcceptOptions{
		"QPConfig.PD is missing": {},
		"SendCQ":                 {QPConfig: hixl.QPConfig{PD: valid.PD}},
		"MaxReads is 1000":       {QPConfig: hixl.QPConfig{PD: valid.PD, MaxReads: 1000}},
		"RNRTimer":               {QPConfig: valid, Connect: hixl.ConnectOptions{RNRTimer: 99}},
		"PrivateData":            {QPConfig: valid, PrivateData: make([]byte, hixl.MaxAcceptData+1)},
	} {
		l, err := f.hosts[0].nic.Listen(t.Context(), ":0", hixl.ListenConfig{Accept: o})
		require.NoError(t, err, "who only uses AcceptRequest gives no options")
		_, err = l.Accept(t.Context()) // nobody comes
		require.ErrorIs(t, err, hixl.ErrConfig, says)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "hixl: accept "+l.Addr().String())
		require.NoError(t, l.Close())
	}
}
