package hostinfo

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A port that somebody holds is reported as taken, and once it is let go as
// free.
func TestPortTakenAndFree(t *testing.T) {
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	require.NoError(t, err)
	at := conn.LocalAddr().(*net.UDPAddr).AddrPort()

	c := portCheck("p", at.Addr(), at.Port())
	require.Equal(t, Missing, c.State)
	require.Contains(t, c.Value, at.String()+" is taken by ")
	require.Contains(t, c.Remedy, "rdma_rxe")
	if runtime.GOOS == "linux" {
		require.Contains(t, c.Value, "this process", "the owner is us")

		c = portCheck("p", netip.IPv4Unspecified(), at.Port())
		require.Equal(t, OK, c.State, "one address is taken, and no NIC opens on all")
		name, err := os.ReadFile("/proc/self/comm")
		require.NoError(t, err)
		require.Contains(t, c.Value, "free but for 127.0.0.1, which "+strings.TrimSpace(string(name)))
	}

	require.NoError(t, conn.Close())
	c = portCheck("p", at.Addr(), at.Port())
	require.Equal(t, OK, c.State)
	require.Empty(t, c.Cost)
}

// Two NICs side by side: each address is its own owner's, and a NIC on all
// addresses is in everybody's way.
func TestPortOverlap(t *testing.T) {
	a, b, all := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2"), netip.IPv4Unspecified()
	require.False(t, overlap(a, b))
	require.True(t, overlap(a, a))
	require.True(t, overlap(a, all))
	require.True(t, overlap(all, b))
}

// An address of nobody's cannot be bound, and that is not called taken.
func TestPortOfForeignAddress(t *testing.T) {
	c := portCheck("p", netip.MustParseAddr("203.0.113.77"), 4791)
	require.Equal(t, Unknown, c.State)
	require.Contains(t, c.Value, "cannot be bound")
}
