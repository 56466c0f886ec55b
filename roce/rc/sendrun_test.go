package rc

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// sendTwins are two connections to which the same happens, but that one gives runs.
type sendTwins struct {
	t          *testing.T
	rng        *rand.Rand
	plain, run *end
	packets    int // that left
	inRuns     int
	msgs       uint64
	reads      []roce.Packet // of the peer
	readSeq    uint64
}

// packet is what leaves of one.
type packet struct {
	header []byte
	at     []mr.Span
	pad    uint8
	inline []byte
	token  uint64
}

// packets are the batch's, runs taken apart.
func packets(b *wr.Batch) (all []packet) {
	for i := range b.Len() {
		o := b.At(i)
		for k := range int(o.Run) {
			one := packet{header: make([]byte, len(o.Header())), pad: o.Pad, inline: o.Inline, token: o.TokenOf(k)}
			o.PutHeader(one.header, k)
			if o.Run == 1 {
				one.at = append(one.at, b.Spans(o)...)
			} else {
				one.at = append(one.at, b.Part(o, k, 1))
			}
			for i := range one.at {
				one.at[i].Region = nil // each has its own
			}
			all = append(all, one)
		}
	}
	return all
}

func newSendTwins(t *testing.T, seed uint64) *sendTwins {
	rng := rand.New(rand.NewPCG(seed, 7))
	mtu := []int{256, 512, 1024, 4096}[rng.IntN(4)]
	send := SendConfig{
		FirstPSN: roce.PSN(rng.Uint32()) & roce.PSNMask, MaxRead: 2, Timeout: 10, RetryCount: 7, RNRRetry: 7, FixedTimeout: true,
		AckEvery: []int{0, 1, 2, 3, 16, 100}[rng.IntN(6)],
	}
	if rng.IntN(2) == 0 {
		send.WindowPSNs = 1 + rng.IntN(200)
	}
	if rng.IntN(2) == 0 {
		send.WindowBytes = 1 + rng.IntN(200*mtu)
	}
	w := &sendTwins{t: t, rng: rng}
	for i, e := range []**end{&w.plain, &w.run} {
		cfg := Config{
			LocalQPN: 0x11, RemoteQPN: 0x22, MTU: mtu, SendQueue: 16, MaxSendSGE: 4, Send: send, Access: qpRight, MaxDestRead: 4,
			ExpectPSN: 0xFFFFF0,
		}
		*e = newEnd(t, fmt.Sprint(i), cfg)
	}
	w.readSeq = 0xFFFFF0
	limit, size := 1+rng.IntN(200), 8400+rng.IntN(1<<18)
	w.plain.batch, w.run.batch = wr.NewBatch(limit, size), wr.NewBatch(limit, size)
	w.run.batch.Runs = true
	return w
}

// both does something to both.
func (w *sendTwins) both(f func(e *end)) {
	f(w.plain)
	f(w.run)
}

// post posts a message of a random kind in up to four pieces.
func (w *sendTwins) post() {
	ops := []wr.Op{wr.OpWrite, wr.OpSend, wr.OpWriteImm, wr.OpSendInv, wr.OpRead, wr.OpFetchAdd}
	r := wr.Request{Op: ops[w.rng.IntN(len(ops))], RemoteAddr: testVA, RKey: 7, Flags: wr.Flags(w.rng.IntN(8)) & (wr.Signaled | wr.Solicited)}
	w.msgs++
	r.ID = w.msgs
	for range 1 + w.rng.IntN(4) {
		n := w.rng.IntN(1 << (3 + w.rng.IntN(15)))
		if r.Op == wr.OpFetchAdd {
			n = 8
		}
		r.Spans = append(r.Spans, w.plain.span(w.rng.IntN(memSize-n), n))
		if r.Op == wr.OpFetchAdd {
			break
		}
	}
	w.both(func(e *end) {
		one := r
		one.Spans = append([]mr.Span{}, r.Spans...)
		for i := range one.Spans {
			one.Spans[i].Region = e.region
		}
		_ = e.rc.Post(e.now, &one)
	})
}

// read lets a READ of the peer arrive, or one of those before again, or its rest.
func (w *sendTwins) read() {
	p := roce.Packet{Opcode: roce.OpReadRequest, Mig: true, PKey: 0xFFFF, DestQP: 0x11, PSN: wr.Wire(w.readSeq), AckReq: true}
	p.RETH = roce.RETH{VA: testVA, Len: w.rng.Uint32N(1 << (3 + w.rng.IntN(16)))}
	mtu := uint64(w.plain.cfg.MTU)
	if again := w.rng.IntN(len(w.reads) + 2); again < len(w.reads) {
		p = w.reads[again]
		skip := w.rng.Uint64N(uint64(wr.Packets(uint64(p.RETH.Len), mtu)))
		p.PSN = (p.PSN + roce.PSN(skip)) & roce.PSNMask
		p.RETH.VA, p.RETH.Len = p.RETH.VA+skip*mtu, p.RETH.Len-uint32(skip*mtu)
	} else if w.plain.rc.resp.nactive < 3 {
		w.readSeq += uint64(wr.Packets(uint64(p.RETH.Len), mtu))
		w.reads = append(w.reads[max(0, len(w.reads)-1):], p)
	} else {
		return
	}
	w.both(func(e *end) {
		p.RETH.RKey = e.region.RKey()
		e.rc.Accept(e.now, &p)
	})
}

// drain compares what leaves.
func (w *sendTwins) drain() {
	allow, bounded := uint64(w.rng.IntN(1<<18)), w.rng.IntN(3) > 0
	var more [2]bool
	for i, e := range []*end{w.plain, w.run} {
		e.batch.Reset()
		if bounded {
			e.batch.Allow(allow)
		}
		more[i] = e.rc.Drain(e.now, e.batch)
	}
	want, got := packets(w.plain.batch), packets(w.run.batch)
	require.Equal(w.t, want, got)
	require.Equal(w.t, more[0], more[1])
	require.Equal(w.t, w.plain.batch.Short(), w.run.batch.Short())
	require.Equal(w.t, w.plain.rc.InFlight(), w.run.rc.InFlight())
	if len(got) > 0 && w.rng.IntN(100) == 0 { // a payload cannot be read
		token := got[w.rng.IntN(len(got))].token
		w.both(func(e *end) { e.rc.Fetched(e.now, token, wr.Revoked, false) })
	}
	w.packets += len(got)
	w.inRuns += len(got) - w.run.batch.Len()
}

// answer lets an answer arrive that may be for any packet that left.
func (w *sendTwins) answer() {
	r := &w.plain.rc.req
	if r.una == r.hi {
		return
	}
	p := roce.Packet{Opcode: roce.OpAcknowledge, Mig: true, PKey: 0xFFFF, DestQP: 0x11}
	p.PSN = wr.Wire(r.una + w.rng.Uint64N(r.hi-r.una))
	p.AETH.Syndrome = roce.Syndrome(0x1F)
	if w.rng.IntN(8) == 0 {
		p.AETH.Syndrome = roce.SynNakSeq
	}
	w.both(func(e *end) { e.rc.Accept(e.now, &p) })
}

// later fires the timer if it is time.
func (w *sendTwins) later() {
	step := w.plain.rc.Deadline()
	if w.rng.IntN(3) > 0 || step.IsZero() {
		step = w.plain.now.Add(1000)
	}
	w.both(func(e *end) { e.now = step; e.rc.Expire(step) })
}

// Packets that leave as runs are those that leave one by one, and what follows is the
// same, whatever the messages, the window, the batch and the answers are.
func TestRunsAreThePackets(t *testing.T) {
	packets, inRuns := 0, 0
	for seed := range uint64(300) {
		w := newSendTwins(t, seed)
		for range 200 {
			switch w.rng.IntN(6) {
			case 0:
				w.post()
			case 1, 2:
				w.answer()
			case 3:
				w.later()
				w.read()
			default:
				w.drain()
			}
			require.Equal(t, w.plain.rc.common.stats, w.run.rc.common.stats, "seed %d", seed)
			require.Equal(t, w.plain.rc.Deadline(), w.run.rc.Deadline())
			require.Equal(t, w.plain.rc.Completions(), w.run.rc.Completions())
			if w.plain.rc.Failed() {
				break
			}
		}
		packets, inRuns = packets+w.packets, inRuns+w.inRuns
	}
	t.Logf("%d packets, of them %d behind others of a run", packets, inRuns)
	require.Greater(t, inRuns, packets/4)
}
