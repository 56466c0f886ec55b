package ud

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

type end struct {
	t     *testing.T
	ud    *UD
	mem   []byte
	reg   *mr.Region
	recvs []wr.Receive
}

func newEnd(t *testing.T, qpn roce.QPN, qkey uint32) *end {
	table, err := mr.NewTable(mr.Config{})
	require.NoError(t, err)
	e := &end{t: t, mem: make([]byte, 1<<14)}
	e.reg, err = table.AllocPD().Register(host.New(e.mem), mr.Options{Access: mr.LocalWrite})
	require.NoError(t, err)
	e.ud = New(Config{LocalQPN: qpn, QKey: qkey, MTU: 1024, Receives: e, MaxRecvSGE: 2, SendQueue: 8, MaxSendSGE: 2})
	e.ud.StartSend(0xFFFFFF)
	return e
}

func (e *end) Take(r *wr.Receive) bool {
	if len(e.recvs) == 0 {
		return false
	}
	r.ID, r.Spans = e.recvs[0].ID, append(r.Spans[:0], e.recvs[0].Spans...)
	e.recvs = e.recvs[1:]
	return true
}

func (e *end) spans(off, n int) []mr.Span {
	return []mr.Span{{Region: e.reg, Off: uint64(off), Len: uint32(n)}}
}

func (e *end) send(r *wr.Request) []byte {
	e.t.Helper()
	require.NoError(e.t, e.ud.Post(r))
	b := wr.NewBatch(4, 1<<16)
	require.False(e.t, e.ud.Drain(b))
	require.Equal(e.t, 1, b.Len())
	o := b.At(0)
	require.Equal(e.t, r.To, *o.To)
	p := append([]byte{}, o.Header()...)
	p = append(p, o.Inline...)
	for _, s := range b.Spans(o) {
		p = append(p, s.Bytes()...)
	}
	if o.Token != 0 {
		require.Empty(e.t, e.ud.Completions(), "not before the payload is read")
		e.ud.Fetched(o.Token, wr.Done)
	}
	require.Len(e.t, e.ud.Completions(), 1)
	e.ud.ClearCompletions()
	return append(p, make([]byte, int(o.Pad)+roce.ICRCLen)...)
}

func (e *end) receive(b []byte) {
	var p roce.Packet
	require.NoError(e.t, p.Decode(b))
	network := [GRHLen]byte{20: 0x45}
	if w := e.ud.Accept(&p, netip.MustParseAddr("192.0.2.7"), &network); w.Kind == wr.WorkPlace {
		for _, s := range w.Spans {
			w.Data = w.Data[copy(s.Bytes(), w.Data):]
		}
		e.ud.Commit(w.Token, wr.Done)
	}
}

var to = wr.Destination{Addr: netip.MustParseAddr("192.0.2.8"), QPN: 0x33, QKey: 0x11111111}

func TestDatagram(t *testing.T) {
	a, b := newEnd(t, 0x21, 5), newEnd(t, 0x33, 0x11111111)
	copy(a.mem, "datagram")
	b.recvs = []wr.Receive{{ID: 7, Spans: b.spans(100, 60)}, {ID: 8, Spans: append(b.spans(200, 30), b.spans(300, 30)...)}}
	p := a.send(&wr.Request{ID: 1, Op: wr.OpSend, Flags: wr.Signaled, Spans: a.spans(0, 8), To: to})
	require.Equal(t, "UD SEND_ONLY qp 0x33 psn 0xffffff DETH qkey 0x11111111 srcqp 0x21 payload 8", show(t, p))
	b.receive(p)
	p = a.send(&wr.Request{ID: 1, Op: wr.OpSendImm, Flags: wr.Signaled | wr.Inline, Inline: []byte("imm"), Imm: 9, To: to})
	require.Equal(t, "UD SEND_ONLY_IMM qp 0x33 psn 0x000000 pad 1 DETH qkey 0x11111111 srcqp 0x21 imm 0x9 payload 3", show(t, p))
	b.receive(p)

	c := b.ud.Completions()
	require.Len(t, c, 2)
	require.Equal(t, cq.Completion{
		WRID: 7, Opcode: cq.OpRecv, ByteLen: 48, Flags: cq.GRH, QPN: 0x33, SrcQP: 0x21, Peer: netip.MustParseAddr("192.0.2.7"),
	}, c[0])
	require.Equal(t, cq.GRH|cq.WithImm, c[1].Flags)
	require.EqualValues(t, 9, c[1].Imm)
	require.Equal(t, "datagram", string(b.mem[140:148]))
	require.EqualValues(t, 0x45, b.mem[120], "the network header")
	require.Equal(t, "imm", string(b.mem[310:313]), "scattered")
}

func show(t *testing.T, b []byte) string {
	var p roce.Packet
	require.NoError(t, p.Decode(b))
	return p.String()
}

// §4.16: wrong Q_Key, no receive, receive too short: dropped, and the receive
// stays posted (R15).
func TestDropped(t *testing.T) {
	a, b := newEnd(t, 0x21, 5), newEnd(t, 0x33, 0x11111111)
	p := a.send(&wr.Request{Op: wr.OpSend, Flags: wr.Signaled, Spans: a.spans(0, 21), To: to})
	b.receive(p)
	require.EqualValues(t, 1, b.ud.Stats().NoReceive)
	b.recvs = []wr.Receive{{ID: 7, Spans: b.spans(0, 60)}}
	b.receive(p)
	require.EqualValues(t, 1, b.ud.Stats().TooLong)
	p[15] ^= 1
	b.receive(p)
	require.EqualValues(t, 1, b.ud.Stats().BadQKey)
	require.Empty(t, b.ud.Completions())
	b.receive(a.send(&wr.Request{Op: wr.OpSend, Flags: wr.Signaled, Spans: a.spans(0, 20), To: to}))
	require.Len(t, b.ud.Completions(), 1)
	require.False(t, b.ud.Failed())
}

// §5.1: a Q_Key with the top bit set cannot be chosen by a work request.
func TestPrivilegedQKey(t *testing.T) {
	a := newEnd(t, 0x21, 5)
	d := to
	d.QKey = GSIQKey
	p := a.send(&wr.Request{Op: wr.OpSend, Flags: wr.Signaled, Spans: a.spans(0, 8), To: d})
	require.Contains(t, show(t, p), "qkey 0x5 ")
	g := newEnd(t, 1, GSIQKey)
	p = g.send(&wr.Request{Op: wr.OpSend, Flags: wr.Signaled, Spans: g.spans(0, 8), To: d})
	require.Contains(t, show(t, p), "qkey 0x80010000 ")
}

func TestPostRefused(t *testing.T) {
	a := newEnd(t, 0x21, 5)
	for _, r := range []*wr.Request{
		{Op: wr.OpWrite, To: to}, {Op: wr.OpRead, To: to}, {Op: wr.OpSend}, {Op: wr.OpSend, Spans: a.spans(0, 1025), To: to},
	} {
		require.ErrorIs(t, a.ud.Post(r), wr.ErrRequest)
	}
}

func TestErrorState(t *testing.T) {
	a, b := newEnd(t, 0x21, 5), newEnd(t, 0x33, 0x11111111)
	p := a.send(&wr.Request{Op: wr.OpSend, Flags: wr.Signaled, Spans: a.spans(0, 50), To: to})
	b.recvs = []wr.Receive{{ID: 7, Spans: b.spans(0, 60)}}
	b.receive(p) // too short, kept
	b.ud.Fail(cq.StatusFlushed)
	c := b.ud.Completions()
	require.Len(t, c, 1)
	require.Equal(t, cq.StatusFlushed, c[0].Status)
	b.receive(p)
	require.EqualValues(t, 1, b.ud.Stats().DroppedInError)
	require.NoError(t, b.ud.Post(&wr.Request{ID: 3, Op: wr.OpSend, To: to}))
	require.Len(t, b.ud.Completions(), 2)
	require.True(t, b.ud.Idle())
}

// §4.16, §1.7, R22: a receiver looks neither at the PSN nor at A; SE is told.
func TestIgnoredFields(t *testing.T) {
	a, b := newEnd(t, 0x21, 5), newEnd(t, 0x33, 0x11111111)
	p := a.send(&wr.Request{Op: wr.OpSend, Flags: wr.Signaled | wr.Solicited, Spans: a.spans(0, 8), To: to})
	require.Zero(t, p[8]&0x80, "A is never set")
	for i, psn := range []byte{0, 0xFF, 7, 7} {
		b.recvs = []wr.Receive{{ID: uint64(i), Spans: b.spans(0, 60)}}
		p[8], p[9], p[11] = 0x80, psn, psn
		b.receive(p)
	}
	require.Len(t, b.ud.Completions(), 4)
	for _, c := range b.ud.Completions() {
		require.Equal(t, cq.GRH|cq.Solicited, c.Flags)
	}
}
