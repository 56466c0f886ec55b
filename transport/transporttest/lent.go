package transporttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/transport"
)

// testLent sends packets built in the carrier's own memory, between others.
func testLent(t *testing.T, a, b transport.Conn) {
	l, ok := a.(transport.Lender)
	if !ok {
		t.Skip("this carrier lends no memory for packets to be sent")
	}
	require.Positive(t, l.Lanes())
	const count = 40
	port := a.SourcePort(0xc123)
	lane := l.Lane(port)
	require.Less(t, lane, l.Lanes())
	for round := range 20 { // more in all than there are
		frames := make([]transport.Frame, count)
		n := l.Lend(lane, frames)
		require.Positive(t, n)
		largest := payloadMax(a)
		var batch []transport.Tx
		var want [][]byte
		for i := range n {
			f := frames[i]
			require.NotZero(t, f.Lease)
			require.GreaterOrEqual(t, len(f.Buf), largest)
			size := 4 + (i*97+round)%1000
			if i == 7 {
				size = min(largest, payloadMax(b))
			}
			p := packet(size, round*count+i)
			switch i % 5 {
			case 3: // not sent after all
				l.TakeBack(frames[i : i+1])
				continue
			case 4: // memory of another lease, or none of ours: copied
				batch = append(batch, transport.Tx{Data: p, Dst: b.LocalAddr(), SrcPort: port})
				l.TakeBack(frames[i : i+1])
			default:
				data := f.Buf[:copy(f.Buf, p)]
				batch = append(batch, transport.Tx{Data: data, Dst: b.LocalAddr(), SrcPort: port, Lease: f.Lease, TOS: 2})
			}
			want = append(want, p)
		}
		send(t, a, batch...)
		for i, r := range collect(t, b, len(want)) {
			require.Equal(t, want[i], r.packet, "round %d, packet %d", round, i)
		}
	}
	// A packet that cannot be sent keeps its frame, and so do those after it.
	frames := make([]transport.Frame, 3)
	require.Equal(t, 3, l.Lend(lane, frames))
	var batch []transport.Tx
	for i := range frames {
		data := frames[i].Buf[:copy(frames[i].Buf, packet(64, i))]
		batch = append(batch, transport.Tx{Data: data, Dst: b.LocalAddr(), SrcPort: port, Lease: frames[i].Lease})
	}
	batch[1].Dst = a.LocalAddr().Next().Next().Next()
	batch[1].Data = batch[1].Data[:0]
	n, err := a.WriteBatch(batch)
	require.ErrorIs(t, err, transport.ErrTx)
	require.Equal(t, 1, n)
	require.Equal(t, packet(64, 0), collect(t, b, 1)[0].packet)
	send(t, a, batch[2])
	require.Equal(t, packet(64, 2), collect(t, b, 1)[0].packet)
	l.TakeBack(frames[1:2])
	require.NoError(t, a.Close())
	require.Zero(t, l.Lend(lane, frames))
}
