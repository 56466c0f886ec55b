package udp

import (
	"encoding/binary"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/internal/hosttest"
	"github.com/gohixl/hixl/transport"
)

// capture opens a packet socket on the loopback interface.
func capture(t *testing.T) int {
	t.Helper()
	all := uint16(unix.ETH_P_ALL)<<8 | unix.ETH_P_ALL>>8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(all))
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	require.NoError(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200_000}))
	return fd
}

// seen is one IPv4 packet as it left.
type seen struct {
	id, frag uint16
	tos      uint8
	srcPort  uint16
	checksum uint16
	length   int // of the UDP payload
}

// captured reads what left for port 4791, until it is quiet. The loopback
// interface shows a packet when it leaves and when it arrives; one is enough.
func captured(t *testing.T, fd int) (packets []seen) {
	t.Helper()
	b := make([]byte, 1<<16)
	for {
		n, from, err := unix.Recvfrom(fd, b, 0)
		if err == unix.EAGAIN {
			return packets
		}
		require.NoError(t, err)
		if from.(*unix.SockaddrLinklayer).Pkttype != unix.PACKET_OUTGOING {
			continue
		}
		p, be := b[:n], binary.BigEndian
		if p[0] != 0x45 || p[9] != unix.IPPROTO_UDP || be.Uint16(p[22:]) != transport.Port {
			continue
		}
		packets = append(packets, seen{
			id: be.Uint16(p[4:]), frag: be.Uint16(p[6:]), tos: p[1],
			srcPort: be.Uint16(p[20:]), checksum: be.Uint16(p[26:]), length: n - 28,
		})
	}
}

// Rule of §1.5 and of package transport: what leaves an unconnected socket with
// IP_PMTUDISC_DO has identification 0 and DF, always.
func TestIdentificationOnTheWire(t *testing.T) {
	inNamespace(t, 65535)
	fd := capture(t)
	a := open(t, addrA, Config{Trains: TrainsOff})
	open(t, addrB, Config{})
	var batch []transport.Tx
	for i := range 40 {
		dst := addrB
		if i%3 == 0 {
			dst = netip.MustParseAddr("127.77.1.9") // nobody: an ICMP error comes back
		}
		batch = append(batch, transport.Tx{
			Data: make([]byte, 100+i), Dst: dst, SrcPort: a.SourcePort(uint16(0xc000 + i)), TOS: uint8(i % 3),
		})
	}
	n, err := a.WriteBatch(batch)
	require.NoError(t, err)
	require.Equal(t, len(batch), n)
	got := captured(t, fd)
	require.Len(t, got, len(batch))
	for i, p := range got {
		require.Equal(t, seen{
			frag: 0x4000, tos: batch[i].TOS, srcPort: batch[i].SrcPort, length: 100 + i, checksum: p.checksum,
		}, p, "packet %d", i)
		require.GreaterOrEqual(t, p.srcPort, uint16(0xc000))
	}
}

// A train that the kernel cuts leaves with identifications 0, 1, 2, ..., each
// train anew.
func TestIdentificationInTrains(t *testing.T) {
	inNamespace(t, 65535)
	segmentInSoftware(t)
	fd := capture(t)
	a := open(t, addrA, Config{})
	hosttest.NeedLinux(t, 4, 18)
	require.True(t, a.Caps().Trains.On(), "this kernel has UDP_SEGMENT")
	_ = captured(t, fd) // the probe's own
	train := transport.Tx{Data: make([]byte, 7*100+50), Seg: 100, Dst: addrB}
	send := []transport.Tx{train, {Data: make([]byte, 60), Dst: addrB}, train}
	n, err := a.WriteBatch(send)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	var ids, want []uint16
	for _, p := range captured(t, fd) {
		require.EqualValues(t, 0x4000, p.frag)
		ids = append(ids, p.id)
	}
	for i := range send {
		for k := range send[i].Packets() {
			want = append(want, uint16(k))
		}
	}
	require.Equal(t, want, ids)
}

// A path that takes less than a packet is reported with what it takes, and only
// that packet.
func TestPathMTU(t *testing.T) {
	inNamespace(t, 1500)
	a, b := open(t, addrA, Config{}), open(t, addrB, Config{})
	require.Equal(t, 1500, a.Caps().MTU)
	require.Equal(t, "lo", a.Info().Interface)
	fits := transport.Tx{Data: make([]byte, 1472), Dst: addrB}
	large := transport.Tx{Data: make([]byte, 1473), Dst: addrB}
	n, err := a.WriteBatch([]transport.Tx{fits, large, fits})
	require.Equal(t, 1, n)
	var mtu *transport.MTUError
	require.ErrorAs(t, err, &mtu)
	require.ErrorIs(t, err, transport.ErrTooBig)
	require.Equal(t, transport.MTUError{Dst: addrB, Bytes: 1501, MTU: 1500}, *mtu)
	require.ErrorContains(t, err, "smaller path MTU")

	if a.Caps().Trains.On() {
		train := transport.Tx{Data: make([]byte, 3*1473), Seg: 1473, Dst: addrB}
		n, err = a.WriteBatch([]transport.Tx{fits, train})
		require.Equal(t, 1, n)
		require.ErrorAs(t, err, &mtu)
		require.Equal(t, 1500, mtu.MTU)
		require.True(t, a.Caps().Trains.On(), "it was the size, not the train")
		train = transport.Tx{Data: make([]byte, 3*1472), Seg: 1472, Dst: addrB}
		_, err = a.WriteBatch([]transport.Tx{train})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		_, _ = b.ReadBatch(transport.NewBatch(b, 8), false)
		return b.Stats().RxPackets >= 2
	}, 2*time.Minute, time.Millisecond)
}

// Destinations out of reach are loss, and the rest of the batch leaves.
func TestUnreachableIsLoss(t *testing.T) {
	inNamespace(t, 65535)
	a, b := open(t, addrA, Config{}), open(t, addrB, Config{})
	n, err := a.WriteBatch([]transport.Tx{
		{Data: make([]byte, 64), Dst: netip.MustParseAddr("192.0.2.7")}, // no route
		{Data: make([]byte, 65), Dst: addrB},
	})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.EqualValues(t, 1, a.Stats().TxUnreachable)
	p := portableAt(t, netip.MustParseAddr("127.77.1.11"))
	n, err = p.WriteBatch([]transport.Tx{{Data: make([]byte, 64), Dst: netip.MustParseAddr("192.0.2.7")}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.EqualValues(t, 1, p.Stats().TxUnreachable)
	slots := transport.NewBatch(b, 2)
	n, err = b.ReadBatch(slots, true)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Len(t, slots[0].Data, 65)
}

// A link-local address is opened by its zone, which no packet shows.
func TestLinkLocal(t *testing.T) {
	inNamespace(t, 65535)
	ip, err := exec.LookPath("ip")
	if err != nil {
		t.Skip("needs the ip command, to make an interface")
	}
	for _, args := range []string{
		"link add d0 mtu 4200 type veth peer name d1", "link set d0 up", "link set d1 up",
		"addr add fe80::77/64 dev d0 nodad", "addr add fe80::78/64 dev d0 nodad",
	} {
		out, err := exec.Command(ip, strings.Fields(args)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	a, b := netip.MustParseAddr("fe80::77"), netip.MustParseAddr("fe80::78")
	src, dst := open(t, a.WithZone("d0"), Config{}), open(t, b.WithZone("d0"), Config{})
	require.Equal(t, a, src.LocalAddr())
	require.Equal(t, 4200, src.Caps().MTU)
	slots := transport.NewBatch(dst, 2)
	got := 0
	require.Eventually(t, func() bool {
		// The kernel adds the route of a new address a little later: until then
		// packets to it are lost.
		_, err := src.WriteBatch([]transport.Tx{
			{Data: []byte("link"), Dst: b, TOS: 2},
			{Data: []byte("zone"), Dst: b.WithZone("d0"), TOS: 2},
		})
		require.NoError(t, err)
		n, err := dst.ReadBatch(slots[got:], false)
		require.NoError(t, err)
		got += n
		return got == 2
	}, 2*time.Minute, time.Millisecond)
	require.Equal(t, a, slots[0].Src)
	require.EqualValues(t, 2, slots[0].TOS)
	require.Equal(t, b, slots[0].Dst)
	// The first of the first batch may be one of the lost.
	require.ElementsMatch(t, []string{"link", "zone"}, []string{string(slots[0].Data), string(slots[1].Data)})
}
