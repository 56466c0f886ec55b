package rc

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// doubles are two engines that must be equal in everything, over one memory: one is
// given each packet by itself, the other runs of them.
type doubles struct {
	t          *testing.T
	single, by *end
	from       *end
	rng        *rand.Rand
	runs, most int
}

// newDoubles makes a peer and the doubles, of which only one answers it.
func newDoubles(t *testing.T, rng *rand.Rand) *doubles {
	mtu := []int{256, 1024}[rng.IntN(2)]
	window := 16 + rng.IntN(200)
	opts := []opt{withMTU(mtu), withSend(func(s *SendConfig) { s.Timeout, s.WindowPSNs, s.RetryCount = 14, window, 7 })}
	a, b := newPair(t, opts...)
	w := &doubles{t: t, from: a, single: b, rng: rng}
	cfg := b.cfg
	w.by = &end{t: t, name: "twin", now: b.now, pd: b.pd, mem: b.mem, region: b.region, seqBase: b.seqBase, cfg: cfg, peer: a, batch: wr.NewBatch(32, 1<<18)}
	cfg.Send = a.cfg.Send
	cfg.Send.FirstPSN = b.cfg.Send.FirstPSN
	for _, e := range []*end{b, w.by} {
		cfg.Receives, e.cfg = e, cfg
		e.rc = New(cfg)
		e.rc.StartSend(cfg.Send)
	}
	return w
}

// accept gives one packet to an engine: copied where it can be, else as work.
func accept(e *end, p *roce.Packet) {
	if _, ok := e.rc.Predict(p); ok {
		e.rc.Placed(e.now, p)
		return
	}
	if w := e.rc.Accept(e.now, p); w.Kind == wr.WorkPlace {
		e.rc.Commit(e.now, w.Token, wr.Done, 0)
	} else if w.Kind == wr.WorkAtomic {
		e.rc.Commit(e.now, w.Token, wr.Done, 7)
	}
}

// deliver gives packets to both.
func (w *doubles) deliver(packets [][]byte) {
	var p, next roce.Packet
	for i := 0; i < len(packets); i++ {
		require.NoError(w.t, p.Decode(packets[i]))
		accept(w.by, &p)
		accept(w.single, &p)
		w.equal()
		likely := 1 + w.rng.IntN(40)
		to, most := w.by.rc.Follow(&p, likely)
		require.LessOrEqual(w.t, most, likely)
		k, asks, last := 0, false, packets[i]
		for k < most && i+1 < len(packets) && w.rng.IntN(40) > 0 {
			ask, ok := roce.Continues(last, packets[i+1])
			if !ok {
				break
			}
			i, k, asks, last = i+1, k+1, asks || ask, packets[i+1]
			require.NoError(w.t, next.Decode(last))
			w.placedAlone(&next, to.Sub(uint32((k-1)*len(next.Payload)), uint32(len(next.Payload))))
		}
		if k > 0 {
			w.by.rc.Followed(w.by.now, &p, k, asks)
			w.runs, w.most = w.runs+1, max(w.most, k)
		}
		w.equal()
	}
}

// placedAlone gives a packet of a run to the engine that knows of none: it goes
// where the run says.
func (w *doubles) placedAlone(p *roce.Packet, to mr.Span) {
	spans, ok := w.single.rc.Predict(p)
	require.True(w.t, ok)
	require.Equal(w.t, []mr.Span{to}, spans)
	w.single.rc.Placed(w.single.now, p)
}

// equal compares all there is of the two engines, but for scratch.
func (w *doubles) equal() {
	x, y := *w.single.rc, *w.by.rc
	for _, c := range []*RC{&x, &y} {
		c.req.c, c.resp.c, c.resp.receives, c.common.spans = nil, nil, nil, nil
		c.resp.pend = wr.Ring[placement]{Head: c.resp.pend.Head, Tail: c.resp.pend.Tail}
		require.Zero(w.t, c.resp.pend.Len())
	}
	x.resp.pend, y.resp.pend = wr.Ring[placement]{}, wr.Ring[placement]{} // what was never pushed has no number
	require.Equal(w.t, x, y)
}

// post gives both doubles the same request, or the peer one for them.
func (w *doubles) post() {
	n := w.rng.IntN(60000)
	op := []wr.Op{wr.OpWrite, wr.OpSend, wr.OpRead, wr.OpWriteImm, wr.OpFetchAdd}[w.rng.IntN(5)]
	if op == wr.OpFetchAdd {
		n = 8
	}
	if w.from.rc.Outstanding() < 8 && w.rng.IntN(2) == 0 {
		if op == wr.OpSend || op == wr.OpWriteImm {
			cut := w.rng.IntN(n + 1)
			r := wr.Receive{Spans: []mr.Span{w.single.span(0, cut), w.single.span(100000, n-cut)}}
			w.single.recvs, w.by.recvs = append(w.single.recvs, r), append(w.by.recvs, r)
		}
		w.from.post(w.from.req(1, op, 0, n))
	}
	if w.single.rc.Outstanding() < 8 && w.rng.IntN(2) == 0 {
		r := w.single.req(2, wr.OpRead, 0, n)
		if cut := w.rng.IntN(n + 1); op == wr.OpRead {
			r.Spans = []mr.Span{w.single.span(0, cut), w.single.span(200000, n-cut)}
		}
		w.single.post(r)
		w.by.post(r)
	}
}

// spoil loses, doubles and swaps packets and changes what they ask for.
func (w *doubles) spoil(in [][]byte) (out [][]byte) {
	for _, b := range in {
		switch w.rng.IntN(150) {
		case 0:
			continue
		case 1:
			out = append(out, b)
		case 2:
			if len(out) > 0 {
				out[len(out)-1], b = b, out[len(out)-1]
			}
		case 3, 4, 5, 6:
			b[8] ^= 0x80
		case 7:
			b[1] ^= 0x40
		case 8:
			b[8] ^= 1
		}
		out = append(out, b)
	}
	return out
}

// A run of packets leaves the engine as the packets one by one do, whatever is lost,
// doubled, swapped or asked for, in both directions.
func TestFollowed(t *testing.T) {
	runs, most := 0, 0
	for seed := range uint64(24) {
		w := newDoubles(t, rand.New(rand.NewPCG(seed, 3)))
		for range 60 {
			w.post()
			w.from.drain()
			w.single.drain()
			w.by.drain()
			require.Equal(t, w.single.sent, w.by.sent, "seed %d", seed)
			require.Equal(t, w.single.done, w.by.done, "seed %d", seed)
			w.by.sent = nil
			toDoubles, toPeer := w.spoil(w.from.sent), w.spoil(w.single.sent)
			w.from.sent, w.single.sent = nil, nil
			w.deliver(toDoubles)
			for _, b := range toPeer {
				w.from.receive(b)
			}
			for _, e := range []*end{w.from, w.single, w.by} {
				e.now += 1_000_000
				e.rc.Expire(e.now)
			}
		}
		runs, most = runs+w.runs, max(most, w.most)
	}
	require.Greater(t, runs, 400)
	require.Greater(t, most, 20)
}
