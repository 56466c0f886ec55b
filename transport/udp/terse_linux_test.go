package udp

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/hosttest"
	"github.com/gohixl/hixl/transport"
)

// pair sends from one Conn to another, one batch at a time.
type pair struct {
	t     *testing.T
	a, b  *Conn
	slots []transport.Rx
}

func newPair(t *testing.T, from, to netip.Addr) *pair {
	p := &pair{t: t, a: open(t, from, Config{}), b: open(t, to, Config{})}
	p.slots = transport.NewBatch(p.b, 8)
	return p
}

// send sends txs to the other end.
func (p *pair) send(txs ...transport.Tx) {
	p.t.Helper()
	for i := range txs {
		txs[i].Dst = p.b.LocalAddr()
	}
	n, err := p.a.WriteBatch(txs)
	require.NoError(p.t, err)
	require.Len(p.t, txs, n)
}

// take receives once, with leave to skip the TOS or not.
func (p *pair) take(skip bool) []transport.Rx {
	p.t.Helper()
	p.slots[0].SkipTOS = skip
	n, err := p.b.ReadBatch(p.slots, true)
	require.NoError(p.t, err)
	return p.slots[:n]
}

// one sends a packet of n bytes and receives it.
func (p *pair) one(n int, tos uint8, skip bool) transport.Rx {
	p.t.Helper()
	data := make([]byte, n)
	data[0], data[n-1] = byte(n), tos
	p.send(transport.Tx{Data: data, TOS: tos})
	got := p.take(skip)
	require.Len(p.t, got, 1)
	require.Equal(p.t, data, got[0].Data)
	require.Equal(p.t, p.a.LocalAddr(), got[0].Src)
	return got[0]
}

// quiet has the socket say little.
func (p *pair) quiet() {
	p.t.Helper()
	for n := 0; !p.b.recv[0].terse.on; n++ {
		require.Less(p.t, n, terseAfter)
		require.EqualValues(p.t, 2, p.one(40, 2, true).TOS)
	}
	require.Zero(p.t, p.one(40, 2, true).TOS)
}

func families(t *testing.T, f func(t *testing.T, p *pair)) {
	t.Run("IPv4", func(t *testing.T) { f(t, newPair(t, addrA, addrB)) })
	t.Run("IPv6", func(t *testing.T) {
		hosttest.NeedIPv6(t)
		c := open(t, addr6, Config{})
		// One is enough: it sends from other ports than it receives at.
		f(t, &pair{t: t, a: c, b: c, slots: transport.NewBatch(c, 8)})
	})
}

// A train that comes to a socket that says little arrives whole, if cut, and has the
// next ones come as trains.
func TestTerseTakesTrains(t *testing.T) {
	families(t, func(t *testing.T, p *pair) {
		hosttest.NeedLinux(t, 5, 0) // receives trains
		p.quiet()
		train := make([]byte, 20*100)
		for i := range train {
			train[i] = byte(i * 3 / 7)
		}
		p.send(transport.Tx{Data: train, Seg: 100, TOS: 2})
		var got []byte
		slots := 0
		for len(got) < len(train) {
			for _, rx := range p.take(true) {
				got = append(got, rx.Data...)
				slots++
			}
		}
		require.Equal(t, train, got)
		require.Equal(t, 20, slots)
		require.False(t, p.b.recv[0].terse.on)
		p.send(transport.Tx{Data: train, Seg: 100, TOS: 2})
		whole := p.take(true)
		require.Len(t, whole, 1)
		require.Equal(t, train, whole[0].Data)
		require.Equal(t, 100, whole[0].Seg)
		require.EqualValues(t, 2, whole[0].TOS)
	})
}

// A train that the socket has already keeps its form.
func TestTerseNotOverTrains(t *testing.T) {
	p := newPair(t, addrA, addrB)
	hosttest.NeedLinux(t, 5, 0) // receives trains
	p.send(transport.Tx{Data: make([]byte, 1000), Seg: 100, TOS: 2})
	p.b.recv[0].quieten()
	require.False(t, p.b.recv[0].terse.on)
	got := p.take(true)
	require.Len(t, got, 1)
	require.Equal(t, 100, got[0].Seg)
}

// Large packets, several at once and marks of congestion want all that can be told.
func TestTerseEnds(t *testing.T) {
	families(t, func(t *testing.T, p *pair) {
		p.quiet()
		p.one(terseBytes+1, 2, true)
		require.False(t, p.b.recv[0].terse.on, "after a large packet")
		p.quiet()
		require.EqualValues(t, 4, p.one(40, 4, false).TOS, "to who wants to know")
		require.False(t, p.b.recv[0].terse.on)
		p.quiet()
		small := transport.Tx{Data: make([]byte, 40), TOS: 2}
		p.send(small, small, small, small, small)
		require.Len(t, p.take(true), terseBatch)
		require.False(t, p.b.recv[0].terse.on, "after several at once")
		require.EqualValues(t, 2, p.take(true)[0].TOS)
	})
}

// A path that marks packets is noticed, and watched from then on.
func TestTerseSeesMarks(t *testing.T) {
	p := newPair(t, addrA, addrB)
	p.quiet()
	sent := 0
	for ; p.one(40, 3, true).TOS != 3; sent++ {
		require.LessOrEqual(t, sent, terseFor)
	}
	for range 3 * terseAfter {
		require.EqualValues(t, 3, p.one(40, 3, true).TOS)
	}
}

// Nothing is told less without leave.
func TestTerseByLeaveOnly(t *testing.T) {
	p := newPair(t, addrA, addrB)
	for range 3 * terseAfter {
		require.EqualValues(t, 2, p.one(40, 2, false).TOS)
	}
	require.False(t, p.b.recv[0].terse.on)
}

// What does not fit is dropped and counted in either state.
func TestTerseTruncates(t *testing.T) {
	p := newPair(t, addrA, addrB)
	p.quiet()
	whole := p.slots[0].Buf
	p.slots[0].Buf = whole[:60:60]
	p.send(transport.Tx{Data: make([]byte, 61)})
	n, err := p.b.ReadBatch(p.slots[:1], false)
	require.NoError(t, err)
	require.Zero(t, n)
	require.EqualValues(t, 1, p.b.Stats().RxTruncated)
	p.slots[0].Buf = whole
	p.one(60, 2, true)
	_, err = p.b.ReadBatch([]transport.Rx{{SkipTOS: true}}, false)
	require.ErrorIs(t, err, transport.ErrNoBuffer)
}
