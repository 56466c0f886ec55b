package rc_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/rc"
	"github.com/gohixl/hixl/roce/wr"
)

// endpoint plays one end of a recorded connection with our engine, and moves
// the bytes as a NIC would.
type endpoint struct {
	t        testing.TB
	c        *connection
	side     side
	engine   *rc.RC
	mem      *memory
	pd       *mr.PD
	local    *mr.Region
	keys     map[uint32]*mr.Region // by the key in the recording
	receives []wr.Receive          // posted and not taken
	batch    *wr.Batch
	clock

	requests, responses []emission
	sent, received      []cq.Completion
}

// emission is a packet that our engine sent.
type emission struct {
	p     roce.Packet
	at    mono.Time
	pos   int  // of the recorded packet that led to it
	probe bool // a timeout led to it
}

func newEndpoint(t testing.TB, c *connection, end side) *endpoint {
	t.Helper()
	table, err := mr.NewTable(mr.Config{Rand: rand.NewChaCha8([32]byte{1})})
	require.NoError(t, err)
	e := &endpoint{t: t, c: c, side: end, pd: table.AllocPD(), keys: map[uint32]*mr.Region{}}
	e.setUp(e)
	e.register()
	e.batch = wr.NewBatch(64, 1<<20)
	cfg := rc.Config{
		LocalQPN: c.qpn[end], RemoteQPN: c.qpn[end.other()], Peer: netip.MustParseAddr("192.0.2.1"), PD: e.pd,
		MTU: c.mtu, ExpectPSN: c.psn[end.other()], Access: mr.RemoteWrite | mr.RemoteRead | mr.RemoteAtomic,
		MaxDestRead: 16, RNRTimerCode: c.rnrCode, Receives: e, SendQueue: 32, Send: c.send,
	}
	cfg.Send.FirstPSN = c.psn[end]
	e.engine = rc.New(cfg)
	e.engine.StartSend(cfg.Send)
	return e
}

// register makes the regions. Keys are ours to choose, not the recording's:
// requests are rewritten to name the same regions (see rekey).
func (e *endpoint) register() {
	e.mem = e.c.memoryOf(e.t, e.side)
	if len(e.mem.bytes) < 16 {
		e.mem.allocate(16) // nothing but zero-length messages
	}
	m := host.New(e.mem.bytes)
	var err error
	e.local, err = e.pd.Register(m, mr.Options{Access: mr.LocalWrite})
	require.NoError(e.t, err)
	for _, r := range e.mem.regions {
		if r.at.n == 0 {
			continue
		}
		e.keys[r.key], err = e.pd.Register(m, mr.Options{
			Off: uint64(r.at.off), Len: uint64(r.at.n), Access: r.access, IOVA: &r.va,
		})
		require.NoError(e.t, err)
	}
}

// rekey returns our key for one of the recording. The wrong keys of vt differ
// from the right one in the same bits as ours then do.
func (e *endpoint) rekey(key uint32) uint32 {
	if r := e.keys[key]; r != nil {
		return r.RKey()
	}
	if r := e.keys[key^0xff00]; r != nil {
		wrong := r.RKey() ^ 0xff00
		_, err := e.pd.Remote(wrong, r.Addr(), 1, 0)
		require.ErrorIs(e.t, err, mr.ErrKey)
		return wrong
	}
	e.t.Fatalf("key %#x of the recording names no region", key)
	return 0
}

// Take gives the oldest posted receive.
func (e *endpoint) Take(r *wr.Receive) bool {
	if len(e.receives) == 0 {
		return false
	}
	r.ID, r.Spans = e.receives[0].ID, append(r.Spans[:0], e.receives[0].Spans...)
	e.receives = e.receives[1:]
	return true
}

func (e *endpoint) span(off, n int) []mr.Span {
	if n == 0 {
		return nil
	}
	return []mr.Span{{Region: e.local, Off: uint64(off), Len: uint32(n)}}
}

func (e *endpoint) postReceives() {
	for i, r := range e.mem.receives {
		e.receives = append(e.receives, wr.Receive{ID: uint64(i), Spans: e.span(r.off, r.n)})
	}
}

// post posts message i of the recording.
func (e *endpoint) post(i int) {
	m := &e.c.sends[e.side][i]
	require.NoError(e.t, e.engine.Post(e.now, &wr.Request{
		ID: uint64(i), Op: m.op, Flags: wr.Signaled, Spans: e.span(e.mem.local[i], m.length),
		RemoteAddr: m.va, RKey: m.rkey, Imm: m.imm, InvKey: m.inv, Compare: m.compare, SwapAdd: m.swapAdd,
	}))
}

// accept gives a recorded packet to the engine and does what it asks for.
func (e *endpoint) accept(p roce.Packet) {
	switch {
	case p.Opcode.Has(roce.HasRETH) && p.RETH.Len > 0:
		p.RETH.RKey = e.rekey(p.RETH.RKey)
	case p.Opcode.Has(roce.HasAtomicETH):
		p.Atomic.RKey = e.rekey(p.Atomic.RKey)
	case p.Opcode.Has(roce.HasIETH):
		p.InvKey = e.rekey(p.InvKey)
	}
	w := e.engine.Accept(e.now, &p)
	switch w.Kind {
	case wr.WorkPlace:
		e.place(w)
	case wr.WorkAtomic:
		e.atomic(w)
	default: // nothing to move
	}
}

func (e *endpoint) place(w wr.Work) {
	rest := w.Data
	for _, s := range w.Spans {
		require.True(e.t, s.Acquire())
		rest = rest[copy(s.Bytes(), rest):]
		s.Release()
	}
	require.Empty(e.t, rest)
	e.engine.Commit(e.now, w.Token, wr.Done, 0)
}

func (e *endpoint) atomic(w wr.Work) {
	op := device.AtomicOp{Kind: device.FetchAdd, Off: w.Spans[0].Off, Operand: w.Operand, Compare: w.Compare}
	if w.Op == roce.OpCmpSwap {
		op.Kind = device.CompareSwap
	}
	done, err := w.Spans[0].Region.Memory().Atomic(&op, 0, nil)
	require.NoError(e.t, err)
	require.True(e.t, done)
	e.engine.Commit(e.now, w.Token, wr.Done, op.Result)
}

// drain lets everything leave that may.
func (e *endpoint) drain() {
	for more := true; more; {
		more = e.engine.Drain(e.now, e.batch)
		for i := range e.batch.Len() {
			e.leave(e.batch.At(i))
		}
		e.batch.Reset()
	}
	for _, done := range e.engine.Completions() {
		if done.Opcode >= cq.OpRecv {
			e.received = append(e.received, done)
		} else {
			e.sent = append(e.sent, done)
		}
	}
	e.engine.ClearCompletions()
}

// leave decodes a packet as the wire would carry it and notes it.
func (e *endpoint) leave(o *wr.Out) {
	b := append([]byte(nil), o.Header()...)
	b = append(b, o.Inline...)
	for _, s := range e.batch.Spans(o) {
		require.True(e.t, s.Acquire())
		b = append(b, s.Bytes()...)
		s.Release()
	}
	if o.Token != 0 {
		e.engine.Fetched(e.now, o.Token, wr.Done, false)
	}
	b = append(b, make([]byte, int(o.Pad)+roce.ICRCLen)...)
	require.Len(e.t, b, o.Size())
	out := emission{at: e.now, pos: e.pos}
	require.NoError(e.t, out.p.Decode(b))
	require.NoError(e.t, out.p.CheckLength(e.c.mtu))
	if out.p.Opcode.IsRequest() {
		e.left(&out)
		e.requests = append(e.requests, out)
	} else {
		e.responses = append(e.responses, out)
	}
}

// littleEndian is whether memory lines of vt can be compared: they show numbers
// as an x86 stores them.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1
