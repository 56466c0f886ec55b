package udp

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/internal/hosttest"
	"github.com/gohixl/hixl/transport"
)

func TestOpenErrors(t *testing.T) {
	addr := netip.MustParseAddr("127.77.1.3")
	open(t, addr, Config{})
	for _, tt := range []struct {
		name string
		addr netip.Addr
		cfg  Config
		want error
		text string
	}{
		{"taken", addr, Config{}, transport.ErrInUse, "another hixl NIC"},
		{"taken, system's own error", addr, Config{}, syscall.EADDRINUSE, "127.77.1.3:4791"},
		{"not local", netip.MustParseAddr("192.0.2.1"), Config{}, transport.ErrNoAddr, "does not have the address"},
		{"no address", netip.Addr{}, Config{}, transport.ErrNoAddr, "unicast address"},
		{"any", netip.IPv4Unspecified(), Config{}, transport.ErrNoAddr, "unicast address"},
		{"multicast", netip.MustParseAddr("224.0.0.1"), Config{}, transport.ErrNoAddr, "unicast address"},
		{"link-local without zone", netip.MustParseAddr("fe80::1"), Config{}, transport.ErrNoAddr, "fe80::1%eth0"},
		{"buffer too small", addr, Config{RecvBuffer: 100}, transport.ErrConfig, "65536..1073741824"},
		{"buffer too large", addr, Config{SendBuffer: 2 << 30}, transport.ErrConfig, "SendBuffer"},
		{"too many ports", addr, Config{SourcePorts: 65}, transport.ErrConfig, "1..64, or 0 for 4"},
		{"negative ports", addr, Config{SourcePorts: -1}, transport.ErrConfig, "SourcePorts is -1"},
		{"shards", addr, Config{Shards: 3}, transport.ErrConfig, "a power of two"},
		{"too many shards", addr, Config{Shards: 8}, transport.ErrConfig, "1..4"},
		{"trains", addr, Config{Trains: 9}, transport.ErrConfig, "TrainsAuto"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Open(tt.addr, tt.cfg)
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.text)
			require.Nil(t, c)
			p, err := openPortable(tt.addr, tt.cfg)
			require.ErrorIs(t, err, tt.want)
			require.Nil(t, p)
		})
	}
}

// The address is free again after Close, and what failed to open left nothing.
func TestReopen(t *testing.T) {
	addr := netip.MustParseAddr("127.77.1.4")
	for range 3 {
		c, err := Open(addr, Config{})
		require.NoError(t, err)
		_, err = Open(addr, Config{})
		require.ErrorIs(t, err, transport.ErrInUse)
		require.NoError(t, c.Close())
	}
}

func TestInfo(t *testing.T) {
	c := open(t, netip.MustParseAddr("127.77.1.5"), Config{SourcePorts: 7, RecvBuffer: 96 << 10, SendBuffer: 96 << 10})
	info := c.Info()
	require.GreaterOrEqual(t, info.RecvBuffer, 96<<10)
	require.GreaterOrEqual(t, info.SendBuffer, 96<<10)
	require.Equal(t, "lo", info.Interface)
	require.Len(t, info.SourcePorts, 7)
	for _, p := range info.SourcePorts {
		require.GreaterOrEqual(t, p, uint16(0xc000))
		require.Equal(t, p, c.SourcePort(p))
	}
}

// The socket's queue overflows silently; the counter tells.
func TestOverflowIsCounted(t *testing.T) {
	a := open(t, netip.MustParseAddr("127.77.1.6"), Config{})
	b := open(t, netip.MustParseAddr("127.77.1.7"), Config{RecvBuffer: MinBuffer})
	batch := make([]transport.Tx, 64)
	for i := range batch {
		batch[i] = transport.Tx{Data: make([]byte, 8192), Dst: b.LocalAddr()}
	}
	n, err := a.WriteBatch(batch)
	require.NoError(t, err)
	require.Equal(t, 64, n)
	var got uint64
	slots := transport.NewBatch(b, 64)
	require.Eventually(t, func() bool {
		n, err := b.ReadBatch(slots, false)
		require.NoError(t, err)
		got += uint64(n)
		return b.Stats().RxOverflow > 0 && b.Stats().RxOverflow+got == 64
	}, 2*time.Minute, time.Millisecond)
}

// When the kernel or a device refuses a train, trains end and the caller is told
// to seal again; single packets go on.
func TestTrainsOffAtRunTime(t *testing.T) {
	a := open(t, netip.MustParseAddr("127.77.1.8"), Config{})
	b := open(t, netip.MustParseAddr("127.77.1.9"), Config{})
	hosttest.NeedLinux(t, 4, 18)
	require.True(t, a.Caps().Trains.On(), "this kernel has UDP_SEGMENT")
	train := transport.Tx{Data: make([]byte, 200), Seg: 100, Dst: b.LocalAddr()}
	single := transport.Tx{Data: make([]byte, 50), Dst: b.LocalAddr()}
	n, err := a.WriteBatch([]transport.Tx{train, single})
	require.NoError(t, err)
	require.Equal(t, 2, n)

	// A limit that the kernel does not share makes it refuse for real.
	a.limit.MaxSegments = 1000
	tooMany := transport.Tx{Data: make([]byte, 600), Seg: 1, Dst: b.LocalAddr()}
	n, err = a.WriteBatch([]transport.Tx{single, tooMany, single})
	require.ErrorIs(t, err, transport.ErrTrainsOff)
	require.Equal(t, 1, n)
	require.False(t, a.Caps().Trains.On())
	require.False(t, a.Info().GSO)

	n, err = a.WriteBatch([]transport.Tx{single, train, single})
	require.ErrorIs(t, err, transport.ErrTrainsOff)
	require.Equal(t, 1, n)
	n, err = a.WriteBatch([]transport.Tx{single, single})
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

func TestFaultOfErrno(t *testing.T) {
	for _, tt := range []struct {
		errno unix.Errno
		train bool
		want  faultKind
	}{
		{unix.EAGAIN, false, faultBusy},
		{unix.ENOBUFS, true, faultFull},
		{unix.ECONNREFUSED, false, faultEarlier},
		{unix.EPERM, false, faultUnreachable},
		{unix.ENETUNREACH, true, faultUnreachable},
		{unix.EMSGSIZE, true, faultSize},
		{unix.EIO, true, faultTrain},
		{unix.EINVAL, true, faultTrain},
		{unix.EINVAL, false, faultOther},
		{unix.EIO, false, faultOther},
		{unix.EBADF, true, faultOther},
	} {
		require.Equal(t, tt.want, fault(tt.errno, tt.train), "%v", tt.errno)
	}
}

// From a loopback address nothing leaves the host. That is the destination's
// fault, not that of trains.
func TestLoopbackReachesOnlyThisHost(t *testing.T) {
	out := netip.MustParseAddr("240.0.0.1") // class E, refused by every router, if there is one
	switch probe, err := net.Dial("udp4", netip.AddrPortFrom(out, 9).String()); {
	case errors.Is(err, syscall.ENETUNREACH):
		t.Skip("needs a route out of this host, which the loopback address must not take")
	case err == nil:
		require.NoError(t, probe.Close())
	}
	addr := netip.MustParseAddr("127.77.1.10")
	refuses := func(t *testing.T, a transport.Conn) {
		before := a.Caps()
		for _, tx := range []transport.Tx{
			{Data: make([]byte, 64), Dst: out},
			{Data: make([]byte, 64), Seg: 32, Dst: out},
		} {
			if tx.IsTrain() && !before.Trains.On() {
				continue
			}
			n, err := a.WriteBatch([]transport.Tx{tx})
			require.Zero(t, n)
			require.ErrorIs(t, err, transport.ErrTx)
			require.ErrorIs(t, err, syscall.EINVAL)
			require.ErrorContains(t, err, "240.0.0.1: from the loopback address 127.77.1.10")
		}
		require.Equal(t, before, a.Caps())
	}
	t.Run("Linux", func(t *testing.T) { refuses(t, open(t, addr, Config{})) })
	t.Run("portable", func(t *testing.T) { refuses(t, portableAt(t, addr)) })
}

// What is kept for the next call does not keep the caller's memory alive.
func TestNothingIsKept(t *testing.T) {
	a, b := open(t, addrA, Config{}), open(t, addrB, Config{})
	tx := transport.Tx{Data: make([]byte, 64), Dst: addrB}
	_, err := a.WriteBatch([]transport.Tx{tx, tx, {Dst: addrB}})
	require.ErrorIs(t, err, transport.ErrTx)
	n, err := b.ReadBatch(transport.NewBatch(b, 8), true)
	require.NoError(t, err)
	require.Positive(t, n)
	require.NotNil(t, a.senders.last.Load())
	for _, iov := range a.senders.get().iovs {
		require.Nil(t, iov.Base)
	}
	for _, iov := range b.recv[0].terse.reader.iovs {
		require.Nil(t, iov.Base)
	}
}

// The low bits of a wanted port choose the lane, and a lane's own port is in it.
func TestSourcePortsSpread(t *testing.T) {
	for lanes := 1; lanes <= MaxSourcePorts; lanes++ {
		for lane := range lanes {
			require.NoError(t, openPort(lane, lanes, func(port uint16) error {
				require.GreaterOrEqual(t, port, uint16(portBase))
				require.Equal(t, lane, make(ports, lanes).lane(port))
				return nil
			}))
		}
	}
	p := ports{0xc110, 0xd221, 0xe332, 0xf443}
	require.Equal(t, 2, p.lane(0xfff2))
}

func TestOpenPortGivesUp(t *testing.T) {
	tries := 0
	err := openPort(2, 3, func(port uint16) error {
		require.GreaterOrEqual(t, port, uint16(portBase))
		tries++
		return syscall.EADDRINUSE
	})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.Equal(t, portTries, tries)
	require.ErrorIs(t, openPort(0, 1, func(uint16) error { return net.ErrClosed }), net.ErrClosed)
}

// Nothing that arrives at a source port is queued there.
func TestSourcePortsTakeNothing(t *testing.T) {
	addr := netip.MustParseAddr("127.77.1.11")
	a := open(t, addr, Config{})
	s, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, a.SourcePort(1))))
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Write([]byte("unasked"))
	require.NoError(t, err)
	lane := a.lanes[a.ports.lane(1)]
	require.NoError(t, lane.control(func(fd uintptr) {
		_, _, err := unix.Recvfrom(int(fd), make([]byte, 8), unix.MSG_DONTWAIT)
		require.Equal(t, unix.EAGAIN, err)
	}))
}

func TestParseControlIsBounded(t *testing.T) {
	var s transport.Rx
	s.Data = make([]byte, 100)
	for _, b := range [][]byte{nil, make([]byte, 3), make([]byte, 64), {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0}} {
		parseControl(b, &s)
	}
	require.Zero(t, s.Seg)
	require.Zero(t, s.TOS)
	good := appendControl(make([]byte, 0, 64), unix.IPPROTO_UDP, unix.UDP_GRO, 4, 40)
	good = appendControl(good, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, 4, 0xba)
	parseControl(good, &s)
	require.Equal(t, 40, s.Seg)
	require.EqualValues(t, 0xba, s.TOS)
}

func BenchmarkWriteRead(b *testing.B) {
	for _, bb := range []struct {
		name  string
		batch func(dst netip.Addr, trains transport.Trains) []transport.Tx
	}{
		{"single", func(dst netip.Addr, _ transport.Trains) []transport.Tx {
			b := make([]transport.Tx, 16)
			for i := range b {
				b[i] = transport.Tx{Data: make([]byte, 4128), Dst: dst}
			}
			return b
		}},
		{"trains", func(dst netip.Addr, trains transport.Trains) []transport.Tx {
			b := make([]transport.Tx, 4)
			for i := range b {
				b[i] = transport.Tx{Data: make([]byte, 4128*trains.Segments(4128)), Seg: 4128, Dst: dst}
			}
			return b
		}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			src := open(b, netip.MustParseAddr("127.77.1.20"), Config{})
			dst := open(b, netip.MustParseAddr("127.77.1.21"), Config{})
			batch := bb.batch(dst.LocalAddr(), src.Caps().Trains)
			total := 0
			for i := range batch {
				total += len(batch[i].Data)
			}
			slots := transport.NewBatch(dst, 16)
			b.SetBytes(int64(total))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := src.WriteBatch(batch); err != nil {
					b.Fatal(err)
				}
				for got := 0; got < total; {
					n, err := dst.ReadBatch(slots, false)
					if err != nil {
						b.Fatal(err)
					}
					for i := range n {
						got += len(slots[i].Data)
					}
				}
			}
		})
	}
}
