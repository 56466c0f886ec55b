package uc

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

const va = 0x10000

// end is an engine, its memory and its receives.
type end struct {
	t     *testing.T
	uc    *UC
	mem   []byte
	reg   *mr.Region
	recvs []wr.Receive
	works []work
	lazy  bool
	sent  [][]byte
}

type work struct {
	w    wr.Work
	data []byte
	span []mr.Span
}

func newPair(t *testing.T) (a, b *end) {
	return newEnd(t, 0x11, 0x22, 0xFFFFFE), newEnd(t, 0x22, 0x11, 0xFFFFFE)
}

func newEnd(t *testing.T, local, remote roce.QPN, psn roce.PSN) *end {
	table, err := mr.NewTable(mr.Config{})
	require.NoError(t, err)
	e := &end{t: t, mem: make([]byte, 1<<16)}
	pd, base := table.AllocPD(), uint64(va)
	e.reg, err = pd.Register(host.New(e.mem), mr.Options{Access: mr.LocalWrite | mr.RemoteWrite, IOVA: &base})
	require.NoError(t, err)
	e.uc = New(Config{
		LocalQPN: local, RemoteQPN: remote, Peer: netip.MustParseAddr("192.0.2.1"), PD: pd, MTU: 1024, ExpectPSN: psn,
		Access: mr.RemoteWrite, Receives: e, MaxRecvSGE: 2, SendQueue: 16, MaxSendSGE: 2,
	})
	e.uc.StartSend(psn)
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

func (e *end) span(off, n int) []mr.Span {
	return []mr.Span{{Region: e.reg, Off: uint64(off), Len: uint32(n)}}
}

func (e *end) postRecv(id uint64, off, n int) {
	e.recvs = append(e.recvs, wr.Receive{ID: id, Spans: e.span(off, n)})
}

func (e *end) post(to *end, id uint64, op wr.Op, off, n int) {
	e.t.Helper()
	require.NoError(e.t, e.uc.Post(&wr.Request{
		ID: id, Op: op, Flags: wr.Signaled, Spans: e.span(off, n), RemoteAddr: va + uint64(off), RKey: to.reg.RKey(), Imm: uint32(id),
	}))
	b := wr.NewBatch(32, 1<<18)
	for e.uc.Drain(b) {
	}
	for i := range b.Len() {
		o := b.At(i)
		p := append([]byte{}, o.Header()...)
		for _, s := range b.Spans(o) {
			p = append(p, s.Bytes()...)
		}
		if o.Token != 0 {
			e.uc.Fetched(o.Token, wr.Done)
		}
		e.sent = append(e.sent, append(p, make([]byte, int(o.Pad)+roce.ICRCLen)...))
	}
}

func (e *end) receive(packets ...[]byte) {
	for _, b := range packets {
		var p roce.Packet
		require.NoError(e.t, p.Decode(b))
		if w := e.uc.Accept(&p); w.Kind == wr.WorkPlace {
			e.works = append(e.works, work{w, append([]byte{}, w.Data...), append([]mr.Span{}, w.Spans...)})
		}
		for !e.lazy && len(e.works) > 0 {
			e.finish(0, wr.Done)
		}
	}
}

func (e *end) finish(i int, o wr.Outcome) {
	w := e.works[i]
	e.works = append(e.works[:i:i], e.works[i+1:]...)
	if o == wr.Done {
		for _, s := range w.span {
			w.data = w.data[copy(s.Bytes(), w.data):]
		}
	}
	e.uc.Commit(w.w.Token, o)
}

func (e *end) wantDone(list ...string) {
	e.t.Helper()
	got := []string{}
	for _, c := range e.uc.Completions() {
		got = append(got, fmt.Sprintf("%d:%s:%d", c.WRID, c.Status, c.ByteLen))
	}
	e.uc.ClearCompletions()
	if list == nil {
		list = []string{}
	}
	require.Equal(e.t, list, got)
}

func fill(b []byte) {
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
}

func TestMessages(t *testing.T) {
	a, b := newPair(t)
	fill(a.mem)
	b.postRecv(100, 30000, 3000)
	b.postRecv(101, 0, 0)
	a.post(b, 1, wr.OpSend, 0, 2500)
	a.post(b, 2, wr.OpWrite, 5000, 13)
	a.post(b, 3, wr.OpWriteImm, 6000, 2000)
	a.post(b, 4, wr.OpSendImm, 0, 1) // no receive: dropped
	require.Equal(t, []byte{0x20, 0x21, 0x22, 0x2a, 0x26, 0x29, 0x25}, opcodes(a.sent))
	for _, p := range a.sent {
		require.Zero(t, p[8]&0x80, "AckReq is never set on UC (R22)")
	}
	a.wantDone("1:success:2500", "2:success:13", "3:success:2000", "4:success:1")
	b.receive(a.sent...)
	b.wantDone("100:success:2500", "101:success:2000")
	require.Equal(t, a.mem[:2500], b.mem[30000:32500])
	require.Equal(t, a.mem[5000:5013], b.mem[5000:5013])
	require.Equal(t, a.mem[6000:8000], b.mem[6000:8000])
	require.EqualValues(t, 1, b.uc.Stats().LostMessages)
	require.True(t, b.uc.Idle())
}

func opcodes(list [][]byte) (ops []byte) {
	for _, p := range list {
		ops = append(ops, p[0])
	}
	return ops
}

// §4.15: a lost packet loses its message and no other; its receive serves the
// next message.
func TestLossLosesOneMessage(t *testing.T) {
	for lost := range 3 {
		a, b := newPair(t)
		fill(a.mem)
		for i := range 3 {
			b.postRecv(uint64(i), 10000*i, 3000)
			a.post(b, uint64(10+i), wr.OpSend, 3000*i, 2500)
		}
		drop := 3 + lost
		b.receive(append(a.sent[:drop:drop], a.sent[drop+1:]...)...)
		b.wantDone("0:success:2500", "1:success:2500")
		require.Equal(t, a.mem[6000:8500], b.mem[10000:12500])
	}
}

func TestDuplicateMiddleLosesMessage(t *testing.T) {
	a, b := newPair(t)
	b.postRecv(1, 0, 3000)
	a.post(b, 1, wr.OpSend, 0, 3000)
	b.receive(a.sent[0], a.sent[1], a.sent[1], a.sent[2])
	b.wantDone()
	require.Len(t, b.recvs, 0)
	a.sent = nil
	a.post(b, 2, wr.OpSend, 0, 10)
	b.receive(a.sent...)
	b.wantDone("1:success:10")
}

// What a peer gets wrong costs it the message, silently.
func TestRefused(t *testing.T) {
	a, b := newPair(t)
	for name, change := range map[string]func(p []byte){
		"rkey":    func(p []byte) { p[23] ^= 1 },
		"range":   func(p []byte) { p[17] = 9 },
		"length":  func(p []byte) { p[27]++ },
		"over":    func(p []byte) { p[24] = 0x90 },
		"too few": func(p []byte) { p[27]-- },
	} {
		a.sent = nil
		a.post(b, 1, wr.OpWrite, 0, 64)
		change(a.sent[0])
		before := b.uc.Stats()
		b.receive(a.sent...)
		require.Equal(t, before.Refused+1, b.uc.Stats().Refused, name)
		require.Zero(t, b.mem[5])
	}
	b.uc.SetAccess(0)
	a.sent = nil
	a.post(b, 1, wr.OpWrite, 0, 64)
	b.receive(a.sent...)
	require.Zero(t, b.mem[5])
	require.False(t, b.uc.Failed())
}

func TestShortReceiveEndsConnection(t *testing.T) {
	a, b := newPair(t)
	b.postRecv(1, 0, 10)
	a.post(b, 1, wr.OpSend, 0, 11)
	b.receive(a.sent...)
	b.wantDone("1:local length error:0")
	require.True(t, b.uc.Failed())
	require.NoError(t, b.uc.Post(&wr.Request{ID: 5, Op: wr.OpSend}))
	b.wantDone("5:work request flushed error:0")
}

// Completions wait for memory, in order.
func TestLateMemory(t *testing.T) {
	a, b := newPair(t)
	fill(a.mem)
	b.lazy = true
	b.postRecv(1, 0, 2000)
	b.postRecv(2, 3000, 2000)
	a.post(b, 1, wr.OpSend, 0, 2000)
	a.post(b, 2, wr.OpSend, 0, 10)
	b.receive(a.sent...)
	b.finish(2, wr.Done)
	b.finish(1, wr.Done)
	b.wantDone()
	require.False(t, b.uc.Idle())
	b.finish(0, wr.Done)
	b.wantDone("1:success:2000", "2:success:10")

	b.postRecv(3, 0, 2000)
	a.sent = nil
	a.post(b, 3, wr.OpSend, 0, 10)
	b.receive(a.sent...)
	b.finish(0, wr.Revoked)
	b.wantDone("3:local protection error:10")
}

func TestUnreadablePayload(t *testing.T) {
	a, b := newPair(t)
	r := &wr.Request{ID: 1, Op: wr.OpWrite, Spans: a.span(0, 100), RemoteAddr: va, RKey: b.reg.RKey()}
	require.NoError(t, a.uc.Post(r))
	require.NoError(t, a.uc.Post(r))
	batch := wr.NewBatch(8, 1<<16)
	a.uc.Drain(batch)
	a.wantDone()
	a.uc.Fetched(batch.At(0).Token, wr.Revoked)
	a.wantDone("1:local protection error:100")
	a.uc.Fetched(batch.At(1).Token, wr.Done)
	require.True(t, a.uc.Idle())
}

func TestPostRefused(t *testing.T) {
	a, _ := newPair(t)
	for _, op := range []wr.Op{wr.OpRead, wr.OpFetchAdd, wr.OpSendInv, wr.NumOps} {
		require.ErrorIs(t, a.uc.Post(&wr.Request{Op: op, Spans: a.span(0, 8)}), wr.ErrRequest)
	}
}

func TestAllOpcodes(t *testing.T) {
	a, b := newPair(t)
	a.post(b, 1, wr.OpSend, 0, 100)
	for op := range 256 {
		for _, n := range []int{0, 4, 16, 20, 32} {
			p := append(a.sent[0][:12:12], make([]byte, n+4)...)
			p[0], p[1] = byte(op), 0x40
			var pkt roce.Packet
			if pkt.Decode(p) == nil {
				b.receive(p)
			}
		}
	}
}

// §4.15, for each operation and each packet of the message: what is lost takes its
// message along, with its immediate, and no other; the receive it would have used
// serves the next.
func TestLossOfEachPacket(t *testing.T) {
	for _, op := range []wr.Op{wr.OpSend, wr.OpSendImm, wr.OpWrite, wr.OpWriteImm} {
		for lost := range 3 {
			a, b := newPair(t)
			fill(a.mem)
			takes := op != wr.OpWrite
			for i := range 3 {
				if takes {
					b.postRecv(uint64(i), 10000*i, 3000)
				}
				a.post(b, uint64(10+i), op, 3000*i, 2500)
			}
			drop := 3 + lost
			b.receive(append(a.sent[:drop:drop], a.sent[drop+1:]...)...)
			var got []uint32
			for _, c := range b.uc.Completions() {
				require.Equal(t, op == wr.OpSendImm || op == wr.OpWriteImm, c.Flags&cq.WithImm != 0)
				got = append(got, c.Imm)
			}
			switch {
			case !takes:
				require.Empty(t, got)
			case op == wr.OpSend:
				b.wantDone("0:success:2500", "1:success:2500")
			default:
				require.Equal(t, []uint32{10, 12}, got, "%v without packet %d", op, lost)
				b.wantDone("0:success:2500", "1:success:2500")
			}
			if op == wr.OpWrite || op == wr.OpWriteImm {
				require.Equal(t, a.mem[:2500], b.mem[:2500])
				require.Equal(t, a.mem[6000:8500], b.mem[6000:8500])
				require.NotEqual(t, a.mem[3000:5500], b.mem[3000:5500])
			}
			require.EqualValues(t, 1, b.uc.Stats().LostMessages+boolean(lost == 0), "%v without packet %d", op, lost)
			require.False(t, b.uc.Failed())
		}
	}
}

// boolean is 1 for true: a message whose first packet is lost was never begun.
func boolean(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
