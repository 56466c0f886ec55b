package rc

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

const (
	memSize  = 1 << 20
	allRight = mr.LocalWrite | mr.RemoteWrite | mr.RemoteRead | mr.RemoteAtomic | mr.RemoteInvalidate
	qpRight  = mr.RemoteWrite | mr.RemoteRead | mr.RemoteAtomic
	testVA   = 0x10000
)

// end is one side of a connection under test: an engine, its memory, and the
// part of a NIC that moves bytes. PSNs in the tests' vocabulary are relative to
// the first PSN of the direction.
type end struct {
	t      *testing.T
	name   string
	now    mono.Time
	rc     *RC
	pd     *mr.PD
	mem    []byte
	region *mr.Region
	recvs  []wr.Receive
	cfg    Config
	peer   *end
	batch  *wr.Batch

	// lazy makes memory finish only when told: works and fetches queue up.
	copies bool // every other payload that can be predicted is placed at once
	lazy   bool
	// recordLate moves bytes at once, in order, but reports late.
	recordLate bool
	works      []lazyWork
	sent       [][]byte // packets that left
	done       []cq.Completion
	seqBase    roce.PSN // of the requests this side sends
}

type lazyWork struct {
	w      wr.Work
	data   []byte
	span   []mr.Span
	result uint64
}

// options of a test connection.
type opt func(a, b *Config)

func withMTU(n int) opt { return func(a, b *Config) { a.MTU, b.MTU = n, n } }
func withSend(f func(*SendConfig)) opt {
	return func(a, _ *Config) { f(&a.Send) }
}
func withResponder(f func(*Config)) opt { return func(_, b *Config) { f(b) } }

// newPair returns a requester a and a responder b that are connected (both can
// do both).
func newPair(t *testing.T, opts ...opt) (a, b *end) {
	cfg := func(local, remote roce.QPN, psn, expect roce.PSN) Config {
		return Config{
			LocalQPN: local, RemoteQPN: remote, Peer: netip.MustParseAddr("192.0.2.9"), MTU: 1024,
			ExpectPSN: expect, Access: qpRight, MaxDestRead: 4, RNRTimerCode: 12, MaxRecvSGE: 4,
			SendQueue: 64, MaxSendSGE: 4,
			Send: SendConfig{FirstPSN: psn, MaxRead: 4, Timeout: 14, RetryCount: 3, RNRRetry: 7, FixedTimeout: true},
		}
	}
	ca, cb := cfg(0x11, 0x22, 0xFFFFFE, 0x2000), cfg(0x22, 0x11, 0x2000, 0xFFFFFE)
	for _, o := range opts {
		o(&ca, &cb)
	}
	a, b = newEnd(t, "a", ca), newEnd(t, "b", cb)
	a.peer, b.peer = b, a
	return a, b
}

func newEnd(t *testing.T, name string, cfg Config) *end {
	table, err := mr.NewTable(mr.Config{})
	require.NoError(t, err)
	e := &end{t: t, name: name, now: 1_000_000, pd: table.AllocPD(), mem: make([]byte, memSize), seqBase: cfg.Send.FirstPSN}
	va := uint64(testVA)
	e.region, err = e.pd.Register(host.New(e.mem), mr.Options{Access: allRight, IOVA: &va})
	require.NoError(t, err)
	cfg.PD, cfg.Receives = e.pd, e
	e.cfg = cfg
	e.rc = New(cfg)
	e.rc.StartSend(cfg.Send)
	e.batch = wr.NewBatch(32, 1<<18)
	return e
}

// Take makes the end the source of its engine's receives.
func (e *end) Take(r *wr.Receive) bool {
	if len(e.recvs) == 0 {
		return false
	}
	r.ID, r.Spans = e.recvs[0].ID, append(r.Spans[:0], e.recvs[0].Spans...)
	e.recvs = e.recvs[1:]
	return true
}

func (e *end) span(off, n int) mr.Span {
	return mr.Span{Region: e.region, Off: uint64(off), Len: uint32(n)}
}

func (e *end) postRecv(id uint64, off, n int) {
	e.recvs = append(e.recvs, wr.Receive{ID: id, Spans: []mr.Span{e.span(off, n)}})
}

// req makes a signaled request of n bytes at offset off on both sides.
func (e *end) req(id uint64, op wr.Op, off, n int) *wr.Request {
	r := &wr.Request{ID: id, Op: op, Flags: wr.Signaled, RemoteAddr: testVA + uint64(off), RKey: e.peer.region.RKey()}
	if op == wr.OpAtomicWrite {
		r.Inline = []byte{1, 2, 3, 4, 5, 6, 7, 8}
	} else if n > 0 {
		r.Spans = []mr.Span{e.span(off, n)}
	}
	return r
}

func (e *end) post(r *wr.Request) {
	e.t.Helper()
	require.NoError(e.t, e.rc.Post(e.now, r))
}

// drain lets everything leave that may.
func (e *end) drain() {
	for {
		more := e.rc.Drain(e.now, e.batch)
		for i := range e.batch.Len() {
			e.send(e.batch.At(i))
		}
		e.batch.Reset()
		if !more {
			break
		}
	}
	e.done = append(e.done, e.rc.Completions()...)
	e.rc.ClearCompletions()
}

func (e *end) send(o *wr.Out) {
	p := append([]byte{}, o.Header()...)
	if o.Inline != nil {
		p = append(p, o.Inline...)
	}
	for _, s := range e.batch.Spans(o) {
		require.True(e.t, s.Acquire())
		p = append(p, s.Bytes()...)
		s.Release()
	}
	if o.Token != 0 {
		e.rc.Fetched(e.now, o.Token, wr.Done, false)
	}
	p = append(p, make([]byte, int(o.Pad)+roce.ICRCLen)...)
	require.Len(e.t, p, o.Size())
	e.sent = append(e.sent, p)
}

// take removes and returns the oldest packet that left.
func (e *end) take() []byte {
	e.t.Helper()
	require.NotEmpty(e.t, e.sent, "%s sent nothing", e.name)
	p := e.sent[0]
	e.sent = e.sent[1:]
	return p
}

// receive gives a packet to the engine and does its work.
func (e *end) receive(b []byte) {
	e.t.Helper()
	var p roce.Packet
	require.NoError(e.t, p.Decode(b))
	predicted, ok := e.rc.Predict(&p)
	predicted = append([]mr.Span{}, predicted...)
	if e.copies = !e.copies; ok && e.copies && !e.lazy && !e.recordLate {
		for data := p.Payload; len(predicted) > 0; predicted = predicted[1:] {
			data = data[copy(predicted[0].Bytes(), data):]
		}
		e.rc.Placed(e.now, &p)
		return
	}
	w := e.rc.Accept(e.now, &p)
	if ok { // what was predicted is what is asked for, always
		require.Equal(e.t, wr.WorkPlace, w.Kind)
		require.Equal(e.t, predicted, w.Spans)
	}
	if w.Kind == wr.WorkNone {
		return
	}
	lw := lazyWork{w: w, data: append([]byte{}, w.Data...), span: append([]mr.Span{}, w.Spans...)}
	if e.recordLate {
		lw.result = e.perform(lw)
	}
	if e.lazy || e.recordLate {
		e.works = append(e.works, lw)
		return
	}
	e.do(lw, wr.Done)
}

// do carries out a piece of work and commits it.
func (e *end) do(w lazyWork, o wr.Outcome) {
	var result uint64
	if o == wr.Done {
		result = e.perform(w)
	}
	e.rc.Commit(e.now, w.w.Token, o, result)
}

func (e *end) perform(w lazyWork) uint64 {
	if w.w.Kind == wr.WorkPlace {
		for _, s := range w.span {
			n := copy(s.Bytes(), w.data)
			w.data = w.data[n:]
		}
		require.Empty(e.t, w.data)
		return 0
	}
	word := w.span[0].Bytes()
	old := binary.NativeEndian.Uint64(word)
	switch w.w.Op {
	case roce.OpFetchAdd:
		binary.NativeEndian.PutUint64(word, old+w.w.Operand)
	case roce.OpCmpSwap:
		if old == w.w.Compare {
			binary.NativeEndian.PutUint64(word, w.w.Operand)
		}
	case roce.OpAtomicWrite:
		binary.NativeEndian.PutUint64(word, w.w.Operand)
	}
	return old
}

// deliver moves the oldest packet of e to its peer.
func (e *end) deliver() {
	e.t.Helper()
	e.peer.receive(e.take())
}

// deliverAll delivers everything that e has sent, in one batch, and lets the
// peer answer.
func (e *end) deliverAll() {
	e.t.Helper()
	for len(e.sent) > 0 {
		e.deliver()
	}
	e.peer.drain()
}

// lose drops the oldest n packets.
func (e *end) lose(n int) {
	e.t.Helper()
	for range n {
		e.take()
	}
}

// advance moves the clock of both ends and fires timers.
func (e *end) advance(d time.Duration) {
	e.now = e.now.Add(d)
	e.peer.now = e.now
	e.rc.Expire(e.now)
	e.drain()
}

// exchange delivers back and forth until both are silent.
func (e *end) exchange() {
	e.t.Helper()
	for range 10000 {
		e.drain()
		e.peer.drain()
		if len(e.sent)+len(e.peer.sent) == 0 {
			return
		}
		e.deliverAll()
		e.peer.deliverAll()
	}
	e.t.Fatal("the exchange does not end")
}

// show describes a packet in the tests' vocabulary.
func (e *end) show(b []byte) string {
	var p roce.Packet
	require.NoError(e.t, p.Decode(b))
	base := e.seqBase
	if p.Opcode.IsResponse() {
		base = e.peer.seqBase
	}
	if p.Opcode == roce.OpCNP {
		return "CNP"
	}
	s := strings.TrimPrefix(p.Opcode.String(), "RC ")
	if p.Opcode == roce.OpAcknowledge {
		s = map[roce.Syndrome]string{
			roce.SynACK: "ACK", roce.SynNakSeq: "NAK-seq", roce.SynNakInvalid: "NAK-inv",
			roce.SynNakAccess: "NAK-access", roce.SynNakOp: "NAK-op",
		}[p.AETH.Syndrome]
		if p.AETH.Syndrome.Kind() == roce.AckRNR {
			s = fmt.Sprintf("RNR(%d)", p.AETH.Syndrome.Value())
		}
	}
	s += fmt.Sprintf(" %d", p.PSN.Sub(base))
	if p.AckReq {
		s += " A"
	}
	if p.SE {
		s += " SE"
	}
	if p.Opcode.Has(roce.HasRETH) {
		s += fmt.Sprintf(" va+%d len=%d", p.RETH.VA-testVA, p.RETH.Len)
	}
	if p.Opcode.Has(roce.HasAETH) {
		s += fmt.Sprintf(" msn=%d", p.AETH.MSN)
	}
	if p.Opcode.Has(roce.HasAtomicAck) {
		s += fmt.Sprintf(" orig=%d", p.AtomicAck)
	}
	if len(p.Payload) > 0 {
		s += fmt.Sprintf(" [%d]", len(p.Payload))
	}
	return s
}

// want checks that exactly these packets have left, and keeps them.
func (e *end) want(packets ...string) {
	e.t.Helper()
	got := []string{}
	for _, b := range e.sent {
		got = append(got, e.show(b))
	}
	if packets == nil {
		packets = []string{}
	}
	require.Equal(e.t, packets, got, "sent by %s", e.name)
}

// wantDone checks the completions so far as "id:STATUS", and forgets them.
func (e *end) wantDone(list ...string) {
	e.t.Helper()
	e.drainCompletions()
	got := []string{}
	for _, c := range e.done {
		got = append(got, fmt.Sprintf("%d:%s", c.WRID, c.Status))
	}
	if list == nil {
		list = []string{}
	}
	require.Equal(e.t, list, got, "completions of %s", e.name)
	e.done = nil
}

func (e *end) drainCompletions() {
	e.done = append(e.done, e.rc.Completions()...)
	e.rc.ClearCompletions()
}

// fill writes a pattern.
func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = byte(i)*7 + seed + byte(i>>8)
	}
}

// tryReceive is receive for packets that may not decode.
func (e *end) tryReceive(b []byte) {
	var p roce.Packet
	if p.Decode(b) == nil {
		e.receive(b)
	}
}
