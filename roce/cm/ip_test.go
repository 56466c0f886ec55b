package cm_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce/cm"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// §5.5: service ids of port spaces.
func TestServices(t *testing.T) {
	for _, c := range []struct {
		space cm.PortSpace
		port  uint16
		id    cm.ServiceID
		name  string
	}{
		{cm.PortSpaceTCP, 7174, 0x01061c06, "tcp/7174"},
		{cm.PortSpaceUDP, 7174, 0x01111c06, "udp/7174"},
		{cm.PortSpaceIB, 1, 0x013F0001, "ib/1"},
		{cm.PortSpaceIPoIB, 0xFFFF, 0x0002FFFF, "ipoib/65535"},
	} {
		require.Equal(t, c.id, c.space.Service(c.port))
		space, port, ok := c.id.Port()
		require.True(t, ok)
		require.Equal(t, c.space, space)
		require.Equal(t, c.port, port)
		require.True(t, c.id.HasIPHeader())
		require.Equal(t, c.name, c.id.String())
	}
	for _, id := range []cm.ServiceID{0, 0x10010001, 0x1_01061c06, 0x1000_0000_0106_1c06, 0x01071c06} {
		require.False(t, id.HasIPHeader(), "%v", id)
		require.Len(t, id.String(), 16)
	}
}

// §1.6: GIDs of IPv4 addresses are mapped ones.
func TestGID(t *testing.T) {
	g := cm.GIDOf(addr("10.77.0.11"))
	require.Equal(t, cm.GID{10: 0xFF, 11: 0xFF, 12: 10, 13: 77, 15: 11}, g)
	require.Equal(t, addr("10.77.0.11"), g.Addr())
	require.Equal(t, addr("fe80::1"), cm.GIDOf(addr("fe80::1%eth0")).Addr())
	require.Equal(t, cm.GID{}, cm.GIDOf(netip.Addr{}))
	require.Equal(t, uint64(0x505400fffe770001), cm.GUIDFromMAC([6]byte{0x52, 0x54, 0, 0x77, 0, 1}))
}

// §5.5: the header of RDMA CM.
func TestIPHeader(t *testing.T) {
	four := cm.IPHeader{SrcPort: 0xbb84, Src: addr("10.77.0.11"), Dst: addr("10.77.0.12")}
	b := four.Append([]byte{9})
	require.Len(t, b, 1+cm.IPHeaderLen)
	require.Equal(t, []byte{9, 0, 0x40, 0xbb, 0x84, 0, 0, 0, 0}, b[:9])
	require.Equal(t, []byte{10, 77, 0, 11}, b[17:21])
	require.Equal(t, []byte{10, 77, 0, 12}, b[33:37])
	var h cm.IPHeader
	require.NoError(t, h.Decode(b[1:]))
	require.Equal(t, four, h)

	six := cm.IPHeader{SrcPort: 1, Src: addr("fd77::11"), Dst: addr("fe80::12%eth0")}
	b = six.Append(nil)
	require.Equal(t, byte(0x60), b[1])
	require.NoError(t, h.Decode(b))
	require.Equal(t, cm.IPHeader{SrcPort: 1, Src: six.Src, Dst: addr("fe80::12")}, h)

	require.ErrorIs(t, h.Decode(b[:35]), cm.ErrLength)
	for _, bad := range []struct{ at, val byte }{{0, 1}, {1, 0}, {1, 0x50}, {1, 0x70}} {
		c := append([]byte(nil), b...)
		c[bad.at] = bad.val
		require.ErrorIs(t, h.Decode(c), cm.ErrVersion)
	}
	b[1] |= 0x0F // reserved
	require.NoError(t, h.Decode(b))
}

// §5.8: ms(t).
func TestMillis(t *testing.T) {
	for exp, ms := range map[uint8]int64{
		0: 1, 8: 1, 9: 2, 16: 256, 17: 512, 18: 1024, 20: 4096, 22: 16384, 24: 65536, 31: 1 << 23, 32: 1 << 23, 255: 1 << 23,
	} {
		require.Equal(t, time.Duration(ms)*time.Millisecond, cm.Millis(exp), "%d", exp)
	}
}

// §5.6: cm_ack_timeout of an ACK delay and a packet lifetime, with the values of
// rxe and ConnectX; C4: no lifetime below 0.
func TestACKTimeout(t *testing.T) {
	for _, c := range []struct{ delay, lifetime, want uint8 }{
		{15, 16, 17}, // rxe, newer kernels
		{16, 16, 18}, // ConnectX
		{15, 18, 19}, // rxe, 6.1
		{15, 13, 16},
		{15, 14, 16},
		{15, 15, 17},
		{15, 0, 15},
		{0, 0, 2},
		{2, 0, 3},
		{31, 31, 31},
		{255, 255, 31},
	} {
		require.Equal(t, c.want, cm.ACKTimeout(c.delay, c.lifetime), "%+v", c)
	}
	require.Equal(t, uint8(0), cm.Lifetime(0))
	require.Equal(t, uint8(18), cm.Lifetime(19))
	require.Equal(t, uint8(30), cm.Lifetime(255))
}
