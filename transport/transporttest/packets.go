package transporttest

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/transport"
)

func testAddresses(t *testing.T, a, b transport.Conn) {
	for _, c := range []transport.Conn{a, b} {
		require.True(t, c.LocalAddr().IsValid())
		require.Empty(t, c.LocalAddr().Zone())
		require.False(t, c.LocalAddr().Is4In6())
	}
	send(t, a, transport.Tx{Data: packet(64, 1), Dst: b.LocalAddr()})
	got := collect(t, b, 1)[0]
	require.Equal(t, a.LocalAddr(), got.Src)
	require.Equal(t, b.LocalAddr(), got.Dst)
	send(t, b, transport.Tx{Data: packet(64, 1), Dst: a.LocalAddr()})
	back := collect(t, a, 1)[0]
	require.Equal(t, b.LocalAddr(), back.Src)
	require.Equal(t, a.LocalAddr(), back.Dst)
}

// Batches longer than what one system call takes arrive whole and in order.
func testOrder(t *testing.T, a, b transport.Conn) {
	const total = 300
	var batch []transport.Tx
	for i := range total {
		batch = append(batch, transport.Tx{Data: packet(60+i%7, i), Dst: b.LocalAddr(), SrcPort: a.SourcePort(0xc001)})
	}
	send(t, a, batch...)
	for i, r := range collect(t, b, total) {
		require.Equal(t, packet(60+i%7, i), r.packet, "packet %d", i)
	}
}

func testSizes(t *testing.T, a, b transport.Conn) {
	limit := min(payloadMax(a), payloadMax(b))
	for _, n := range []int{1, 2, 3, 4, 23, 24, 63, 64, 65, 255, 256, 300, 1023, 1024, 1056, 2080, 4096, 4128, 8192, limit - 1, limit} {
		if n > limit {
			continue
		}
		send(t, a, transport.Tx{Data: packet(n, n), Dst: b.LocalAddr()})
		require.Equal(t, packet(n, n), collect(t, b, 1)[0].packet, "%d bytes", n)
	}
}

// Slots may be swapped by ReadBatch but storage is neither lost nor shared.
func testSlots(t *testing.T, a, b transport.Conn) {
	if b.Caps().Lends {
		t.Skip("this carrier lends its own memory")
	}
	slots := transport.NewBatch(b, 4)
	want := map[*byte]bool{}
	for i := range slots {
		want[&slots[i].Buf[0]] = true
	}
	for round := range 3 {
		send(t, a, transport.Tx{Data: packet(100, round), Dst: b.LocalAddr()},
			transport.Tx{Data: packet(200, round), Dst: b.LocalAddr()})
		within(t, "WaitRead", func() { _ = b.WaitRead() })
		for n := 0; n < 2; {
			k, err := b.ReadBatch(slots[n:], true)
			require.NoError(t, err)
			for i := n; i < n+k; i++ {
				require.Same(t, &slots[i].Buf[0], &slots[i].Data[0])
				n += slots[i].Packets() - 1
			}
			n += k
		}
	}
	have := map[*byte]bool{}
	for i := range slots {
		have[&slots[i].Buf[0]] = true
	}
	require.Equal(t, want, have)
}

func testTOS(t *testing.T, a, b transport.Conn) {
	if !a.Caps().ECN || !b.Caps().ECN {
		t.Skip("this carrier says it has no ECN")
	}
	tos := []uint8{0, 1, 2, 3, 0xb8, 0xba, 0xfd, 0}
	var batch []transport.Tx
	for i, v := range tos {
		batch = append(batch, transport.Tx{Data: packet(64+i, i), Dst: b.LocalAddr(), TOS: v})
	}
	send(t, a, batch...)
	for i, r := range collect(t, b, len(tos)) {
		require.Equal(t, packet(64+i, i), r.packet)
		require.Equal(t, tos[i], r.TOS, "packet %d", i)
	}
}

func testSourcePorts(t *testing.T, a, b transport.Conn) {
	used := map[uint16]bool{}
	for _, want := range []uint16{0, 1, 4791, 0xc000, 0xc462, 0xd466, 0xf00d, 0xffff} {
		port := a.SourcePort(want)
		require.Equal(t, port, a.SourcePort(want), "the same each time")
		require.Equal(t, port, a.SourcePort(port), "a port of its own maps to itself")
		used[port] = true
		send(t, a, transport.Tx{Data: packet(64, 1), Dst: b.LocalAddr(), SrcPort: want},
			transport.Tx{Data: packet(80, 2), Dst: b.LocalAddr(), SrcPort: port})
		for _, r := range collect(t, b, 2) {
			require.Equal(t, port, r.SrcPort, "wanted %#x", want)
		}
	}
	require.Greater(t, len(used), 1, "wanted ports are spread")
}

// Where headers are visible they are those that doc.go promises.
func testIdentification(t *testing.T, a, b transport.Conn) {
	send(t, a, transport.Tx{Data: packet(64, 1), Dst: b.LocalAddr()}, transport.Tx{Data: packet(65, 2), Dst: b.LocalAddr()})
	if a.Caps().FullIPControl {
		send(t, a, transport.Tx{Data: packet(66, 3), Dst: b.LocalAddr(), ID: 0xbeef})
	} else {
		send(t, a, transport.Tx{Data: packet(66, 3), Dst: b.LocalAddr()})
	}
	visible := b.Caps().HeadersVisible
	for i, r := range collect(t, b, 3) {
		require.Equal(t, visible && b.LocalAddr().Is4(), r.HaveID)
		if !r.HaveID {
			require.Zero(t, r.ID)
			require.Zero(t, r.Frag)
			continue
		}
		require.NotZero(t, r.TTL)
		require.EqualValues(t, 0x4000, r.Frag, "DF")
		switch {
		case i == 2 && a.Caps().FullIPControl:
			require.EqualValues(t, 0xbeef, r.ID)
		case a.Caps().KnownID:
			require.Zero(t, r.ID)
		}
	}
}

func testTrains(t *testing.T, a, b transport.Conn) {
	trains := a.Caps().Trains
	if !trains.On() {
		n, err := a.WriteBatch([]transport.Tx{
			{Data: packet(64, 1), Dst: b.LocalAddr()},
			{Data: packet(128, 1), Seg: 64, Dst: b.LocalAddr()},
		})
		require.ErrorIs(t, err, transport.ErrTrainsOff)
		require.Equal(t, 1, n)
		collect(t, b, 1)
		return
	}
	mtu := min(payloadMax(a), payloadMax(b))
	for _, seg := range []int{1, 64, 1056, 4128} {
		if seg > mtu {
			continue
		}
		full := trains.Segments(seg)
		for _, n := range []int{2, 3, full} {
			for _, last := range []int{seg, (seg + 1) / 2} {
				checkTrain(t, a, b, seg, n, last)
			}
		}
	}
	n, err := a.WriteBatch([]transport.Tx{{Data: make([]byte, 64*(trains.MaxSegments+1)), Seg: 64, Dst: b.LocalAddr()}})
	require.ErrorIs(t, err, transport.ErrTx)
	require.Zero(t, n)
}

// checkTrain sends a train of n packets between two single ones.
func checkTrain(t *testing.T, a, b transport.Conn, seg, n, last int) {
	var data []byte
	var want [][]byte
	for i := range n {
		size := seg
		if i == n-1 {
			size = last
		}
		want = append(want, packet(size, i))
		data = append(data, want[i]...)
	}
	first, final := packet(40, 77), packet(41, 78)
	send(t, a, transport.Tx{Data: first, Dst: b.LocalAddr()},
		transport.Tx{Data: data, Seg: seg, Dst: b.LocalAddr(), TOS: 2},
		transport.Tx{Data: final, Dst: b.LocalAddr(), Seg: 64})
	got := collect(t, b, n+2)
	require.Equal(t, first, got[0].packet)
	require.Equal(t, final, got[n+1].packet)
	for i, r := range got[1 : n+1] {
		require.Equal(t, want[i], r.packet, "train of %d × %d, last %d: packet %d", n, seg, last, i)
		if b.Caps().ECN {
			require.EqualValues(t, 2, r.TOS)
		}
		if r.HaveID && a.Caps().KnownID {
			require.EqualValues(t, i, r.ID, "identification is the index")
		}
	}
}

func testBadTx(t *testing.T, a, b transport.Conn) {
	other := netip.MustParseAddr("2001:db8::1")
	if a.LocalAddr().Is6() {
		other = netip.MustParseAddr("192.0.2.1")
	}
	good := transport.Tx{Data: packet(64, 1), Dst: b.LocalAddr()}
	for _, tt := range []struct {
		name string
		bad  transport.Tx
		want error
	}{
		{"no destination", transport.Tx{Data: packet(64, 1)}, transport.ErrTx},
		{"other family", transport.Tx{Data: packet(64, 1), Dst: other}, transport.ErrTx},
		{"no data", transport.Tx{Dst: b.LocalAddr()}, transport.ErrTx},
		{"too long for IP", transport.Tx{Data: make([]byte, 65530), Dst: b.LocalAddr()}, transport.ErrTooBig},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := a.WriteBatch([]transport.Tx{good, tt.bad, good})
			require.ErrorIs(t, err, tt.want)
			require.Equal(t, 1, n, "what stood before it is sent, what comes after is not")
			collect(t, b, 1)
		})
	}
	n, err := a.WriteBatch(nil)
	require.NoError(t, err)
	require.Zero(t, n)
}
