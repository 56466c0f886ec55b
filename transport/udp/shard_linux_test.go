package udp

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/internal/hosttest"
	"github.com/gohixl/hixl/transport"
)

// toQPN returns n bytes, with the number of a destination queue pair in them.
func toQPN(n int, qpn byte) []byte {
	b := make([]byte, n)
	b[qpnLowByte] = qpn
	return b
}

// takePart reads packets from one part until there are n, and returns the
// numbers of their queue pairs.
func takePart(t *testing.T, c *Conn, part transport.Reader, n int) (qpns []byte) {
	t.Helper()
	slots := transport.NewBatch(c, 8)
	for len(qpns) < n {
		k, err := part.ReadBatch(slots, true)
		require.NoError(t, err)
		for i := range slots[:k] {
			for p := range slots[i].Packets() {
				qpns = append(qpns, slots[i].Packet(p)[qpnLowByte])
			}
		}
	}
	return qpns
}

func requireEmpty(t *testing.T, c *Conn, part transport.Reader) {
	t.Helper()
	n, err := part.ReadBatch(transport.NewBatch(c, 1), false)
	require.NoError(t, err)
	require.Zero(t, n)
}

// Packets and whole trains come by the shard that the low bits of the QPN say, for
// both families.
func TestShardsAreSteered(t *testing.T) {
	t.Run("IPv4", func(t *testing.T) {
		requireSteering(t, netip.MustParseAddr("127.77.1.30"), netip.MustParseAddr("127.77.1.31"))
	})
	t.Run("IPv6", func(t *testing.T) {
		hosttest.NeedIPv6(t)
		requireSteering(t, addr6, addr6)
	})
}

func requireSteering(t *testing.T, from, to netip.Addr) {
	t.Helper()
	b := open(t, to, Config{Shards: 4})
	a := b
	if from != to {
		a = open(t, from, Config{})
	}
	require.Equal(t, 4, b.Info().Shards)
	parts := b.Shards()
	require.Len(t, parts, 4)
	for qpn := range byte(16) {
		tx := []transport.Tx{{Data: toQPN(64, qpn), Dst: to}}
		want := []byte{qpn}
		if a.Caps().Trains.On() {
			train := append(toQPN(100, qpn), toQPN(100, qpn)...)
			tx = append(tx, transport.Tx{Data: train, Seg: 100, Dst: to})
			want = append(want, qpn, qpn)
		}
		n, err := a.WriteBatch(tx)
		require.NoError(t, err)
		require.Equal(t, len(tx), n)
		require.Equal(t, want, takePart(t, b, parts[qpn%4], len(want)))
		for _, p := range parts {
			requireEmpty(t, b, p)
		}
	}
	_, err := a.WriteBatch([]transport.Tx{{Data: []byte{1, 2, 3}, Dst: to}})
	require.NoError(t, err)
	require.NoError(t, parts[0].WaitRead())
	total := uint64(0)
	for _, p := range parts {
		total += p.Stats().RxPackets
	}
	require.Equal(t, b.Stats().RxPackets, total)
}

// Who does not know of shards reads all of them.
func TestShardsReadAsOne(t *testing.T) {
	b := open(t, netip.MustParseAddr("127.77.1.32"), Config{Shards: 4})
	a := open(t, netip.MustParseAddr("127.77.1.33"), Config{})
	seen := map[byte]bool{}
	for qpn := range byte(8) {
		_, err := a.WriteBatch([]transport.Tx{{Data: toQPN(64, qpn), Dst: b.LocalAddr()}})
		require.NoError(t, err)
		if qpn%2 == 0 {
			require.NoError(t, b.WaitRead())
		}
		for _, got := range takePart(t, b, b, 1) {
			seen[got] = true
		}
	}
	require.Len(t, seen, 8)
	requireEmpty(t, b, b)
}

// A second owner fails, whether it asks to share the address or not.
func TestShardedAddressIsTaken(t *testing.T) {
	addr := netip.MustParseAddr("127.77.1.34")
	c := open(t, addr, Config{Shards: 4})
	for _, shards := range []int{1, 4} {
		_, err := Open(addr, Config{Shards: shards})
		require.ErrorIs(t, err, transport.ErrInUse)
	}
	_, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, transport.Port)))
	require.ErrorIs(t, err, unix.EADDRINUSE)
	require.NoError(t, c.Close())

	c = open(t, addr, Config{})
	require.ErrorIs(t, join(addr), unix.EADDRINUSE, "one shard shares with nobody")
	require.NoError(t, c.Close())
	require.NoError(t, open(t, addr, Config{Shards: 2}).Close())
}

// join tries to share an address as a foreign program could.
func join(addr netip.Addr) error {
	s, err := listen(netip.AddrPortFrom(addr, transport.Port), func(fd int) error { return setOpts(fd, []option{reusePort}) })
	if err == nil {
		_ = s.Close()
	}
	return err
}

// Nobody but the same user can share the address of several shards.
func TestShardsAreOfOneUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become somebody else")
	}
	addr := netip.MustParseAddr("127.77.1.35")
	open(t, addr, Config{Shards: 2})
	result := make(chan error, 1)
	go func() { // the thread ends with the goroutine
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
			result <- errno
			return
		}
		result <- join(addr)
	}()
	require.ErrorIs(t, <-result, unix.EADDRINUSE)
}

// Each shard has a receive queue and counts what it lost.
func TestShardsCountOverflow(t *testing.T) {
	b := open(t, netip.MustParseAddr("127.77.1.36"), Config{Shards: 2, RecvBuffer: MinBuffer})
	a := open(t, netip.MustParseAddr("127.77.1.37"), Config{})
	for range 200 {
		_, err := a.WriteBatch([]transport.Tx{{Data: toQPN(4000, 1), Dst: b.LocalAddr()}})
		require.NoError(t, err)
	}
	parts := b.Shards()
	require.Zero(t, parts[0].Stats().RxOverflow)
	require.Positive(t, parts[1].Stats().RxOverflow)
	require.Equal(t, parts[1].Stats().RxOverflow, b.Stats().RxOverflow)
}

// Close wakes who waits for a part and who waits for all.
func TestCloseWakesShards(t *testing.T) {
	c := open(t, netip.MustParseAddr("127.77.1.38"), Config{Shards: 4})
	ended := make(chan error, 8)
	for _, r := range append(c.Shards(), c) {
		go func() { ended <- r.WaitRead() }()
	}
	time.Sleep(time.Millisecond)
	require.NoError(t, c.Close())
	for range 5 {
		require.ErrorIs(t, <-ended, net.ErrClosed)
	}
	for _, r := range append(c.Shards(), c) {
		_, err := r.ReadBatch([]transport.Rx{{Buf: make([]byte, 100)}}, true)
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, r.WaitRead(), net.ErrClosed)
	}
}
