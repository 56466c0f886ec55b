package connmgr_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/connmgr"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/roce/cm"
)

func TestGUID(t *testing.T) {
	require.Equal(t, uint64(0x024858040a000102), connmgr.GUID(netip.MustParseAddr("10.0.1.2")))
	require.Equal(t, connmgr.GUID(netip.MustParseAddr("10.0.1.2")), connmgr.GUID(netip.MustParseAddr("::ffff:10.0.1.2")))
	six := connmgr.GUID(netip.MustParseAddr("fd00::1"))
	require.Equal(t, uint64(0x0248588000000000), six&0xFFFFFF8000000000)
	require.NotEqual(t, six, connmgr.GUID(netip.MustParseAddr("fd00::2")))
	require.Equal(t, six, connmgr.GUID(netip.MustParseAddr("fd00::1")))
}

// There is one QP1, so one manager.
func TestOneManager(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 1})
	m, err := connmgr.New(connmgr.Config{NIC: f.NICs[0]})
	require.NoError(t, err)
	_, err = connmgr.New(connmgr.Config{NIC: f.NICs[0]})
	require.ErrorIs(t, err, nic.ErrGSIExists)
	m.Close()
	m.Close()
	_, err = m.Connect(cm.ConnectParams{}, nil)
	require.ErrorIs(t, err, nic.ErrClosed)
	require.ErrorIs(t, m.Listen(1, nil), nic.ErrClosed)
	require.False(t, m.Bind(1, nil))
	m.Unlisten(1)
	m.Disconnect(1)
	f.Settle()
}
