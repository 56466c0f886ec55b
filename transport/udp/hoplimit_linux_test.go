package udp

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
)

// Packets must survive routers (docs/bugs.md, A12): the hop limit is at least 64.
func TestHopLimit(t *testing.T) {
	a := open(t, netip.MustParseAddr("127.92.50.1"), Config{})
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 92, 50, 2), Port: transport.Port})
	require.NoError(t, err)
	defer c.Close()
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	var failed error
	require.NoError(t, raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVTTL, 1)
	}))
	require.NoError(t, failed)
	_, err = a.WriteBatch([]transport.Tx{{Data: make([]byte, 64), Dst: netip.MustParseAddr("127.92.50.2")}})
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(2*time.Minute)))
	oob := make([]byte, 64)
	_, n, _, _, err := c.ReadMsgUDP(make([]byte, 100), oob)
	require.NoError(t, err)
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	require.NoError(t, err)
	require.Len(t, messages, 1)
	require.EqualValues(t, unix.IP_TTL, messages[0].Header.Type)
	require.GreaterOrEqual(t, messages[0].Data[0], byte(64))
}
