package rc

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// lossModel is two engines, the processors they run on and a link that loses
// packets, in virtual time. A processor takes what has arrived, handles it, and
// sends what the engine gives, each of which takes its time; so a window that is
// too large stands as a queue before the slower side.
type lossModel struct {
	t     testing.TB
	rng   *rand.Rand
	loss  float64
	hosts []modelHost // 2i talks with 2i+1
	link  time.Duration
	queue *modelQueue // which the even ones send through, if there is one
	free  [][]byte
	batch *wr.Batch
}

type modelHost struct {
	rc   *RC
	busy mono.Time // until then
	in   []modelPacket
	cost modelCost
}

type modelPacket struct {
	at mono.Time
	b  []byte
	to int // the host, in a queue
}

// modelCost is the time a processor takes to wake up, which varies by jitter, and for
// each packet.
type modelCost struct{ wake, receive, send, jitter time.Duration }

// modelLoad is what is transferred, and over what.
type modelLoad struct {
	name      string
	mtu       int
	op        wr.Op
	size      int
	depth     int
	messages  int
	link      time.Duration
	here, far modelCost
	send      SendConfig
}

// The costs are of the order that was measured: of two processes on one machine,
// of rdma_rxe behind a bridge, and of a link whose round trip takes a millisecond; and
// one between hosts that are slow to wake up, so that round trips tell nothing.
var modelLoads = []modelLoad{
	{
		name: "loopback", mtu: 4096, op: wr.OpWrite, size: 1 << 20, depth: 8, messages: 120, link: 5 * time.Microsecond,
		here: modelCost{8 * time.Microsecond, 300, 300, 0}, far: modelCost{8 * time.Microsecond, 800, 300, 0},
	},
	{
		name: "read", mtu: 4096, op: wr.OpRead, size: 1 << 20, depth: 8, messages: 60, link: 5 * time.Microsecond,
		here: modelCost{8 * time.Microsecond, 800, 300, 0}, far: modelCost{8 * time.Microsecond, 300, 300, 0},
	},
	{
		name: "rxe", mtu: 1024, op: wr.OpWrite, size: 20001, depth: 100, messages: 100, link: 40 * time.Microsecond,
		here: modelCost{10 * time.Microsecond, 2000, 3000, 0}, far: modelCost{10 * time.Microsecond, 8000, 5000, 0},
	},
	{
		name: "far", mtu: 4096, op: wr.OpWrite, size: 1 << 20, depth: 8, messages: 80, link: 500 * time.Microsecond,
		here: modelCost{8 * time.Microsecond, 500, 500, 0}, far: modelCost{8 * time.Microsecond, 1000, 500, 0},
	},
	{
		name: "noisy", mtu: 4096, op: wr.OpWrite, size: 1 << 20, depth: 8, messages: 120, link: 40 * time.Microsecond,
		here: modelCost{8 * time.Microsecond, 500, 500, 100 * time.Microsecond}, far: modelCost{8 * time.Microsecond, 1000, 500, 100 * time.Microsecond},
	},
}

type modelResult struct {
	took    time.Duration
	packets uint64 // that were needed
	sent    uint64
}

func runModel(t testing.TB, l modelLoad, loss float64, seed uint64) modelResult {
	tt, ok := t.(*testing.T)
	if !ok {
		tt = &testing.T{}
	}
	a, b := newPair(tt, withMTU(l.mtu), func(a, _ *Config) {
		a.Send = l.send
		a.Send.FirstPSN, a.Send.MaxRead = 0xFFFFFE, 4
		a.Send.Timeout, a.Send.RetryCount, a.Send.RNRRetry = 14, 7, 7
		a.SendQueue = 128
	})
	m := &lossModel{t: t, rng: rand.New(rand.NewPCG(seed, 3)), loss: loss, link: l.link, batch: wr.NewBatch(256, 1<<18)}
	m.hosts = []modelHost{{rc: a.rc, cost: l.here}, {rc: b.rc, cost: l.far}}
	r := a.req(1, l.op, 0, l.size)
	start := a.now
	now := start
	posted, done := 0, 0
	for done < l.messages {
		for ; posted < l.messages && posted-done < l.depth; posted++ {
			if err := a.rc.Post(now, r); err != nil {
				t.Fatal(err)
			}
		}
		now = m.step(now)
		done += len(a.rc.Completions())
		a.rc.ClearCompletions()
		b.rc.ClearCompletions()
		if a.rc.Failed() {
			t.Fatalf("failed at %v: %+v", now.Sub(start), a.rc.Cause())
		}
	}
	s := a.rc.Stats()
	packets := uint64(l.messages) * uint64((l.size+l.mtu-1)/l.mtu)
	sent := s.Requests
	if l.op == wr.OpRead {
		sent = b.rc.Stats().Responses
	}
	return modelResult{took: now.Sub(start), packets: packets, sent: sent}
}

// step lets the processor run that has something to do first.
func (m *lossModel) step(now mono.Time) mono.Time {
	best, at := -1, mono.Time(0)
	for i := range m.hosts {
		h := &m.hosts[i]
		next := h.rc.Deadline()
		if len(h.in) > 0 {
			next = mono.Earliest(next, h.in[0].at)
		}
		if m.ready(h) {
			next = mono.Earliest(next, now)
		}
		if next.IsZero() {
			continue
		}
		next = max(next, h.busy)
		if best < 0 || next < at {
			best, at = i, next
		}
	}
	if q := m.queue; q != nil && len(q.in) > 0 && (best < 0 || q.in[0].at <= at) {
		return max(q.forward(m), now)
	}
	if best < 0 {
		m.t.Fatal("nothing will happen any more")
	}
	m.run(best, max(at, now))
	return max(at, now)
}

func (m *lossModel) ready(h *modelHost) bool { return h.rc.resp.hasOutput() || h.rc.req.couldSend() }

func (m *lossModel) run(i int, now mono.Time) {
	h, peer := &m.hosts[i], &m.hosts[i^1]
	clock := now.Add(h.cost.wake)
	if j := h.cost.jitter; j > 0 {
		clock = clock.Add(time.Duration(m.rng.Int64N(int64(j))))
	}
	n := 0
	for ; n < len(h.in) && n < 256 && h.in[n].at <= now; n++ {
		var p roce.Packet
		if err := p.Decode(h.in[n].b); err != nil {
			m.t.Fatal(err)
		}
		if w := h.rc.Accept(now, &p); w.Kind != wr.WorkNone {
			h.rc.Commit(now, w.Token, wr.Done, 0)
		}
		clock = clock.Add(h.cost.receive)
		m.free = append(m.free, h.in[n].b)
	}
	h.in = h.in[n:]
	h.rc.Expire(now)
	m.batch.Reset()
	h.rc.Drain(now, m.batch)
	for k := range m.batch.Len() {
		o := m.batch.At(k)
		if o.Token != 0 {
			h.rc.Fetched(now, o.Token, wr.Done, false)
		}
		clock = clock.Add(h.cost.send)
		switch {
		case m.rng.Float64() < m.loss:
		case m.queue != nil && i%2 == 0:
			m.queue.put(i, clock, m.packet(o))
		default:
			peer.in = append(peer.in, modelPacket{at: clock.Add(m.link), b: m.packet(o)})
		}
	}
	h.busy = clock
}

func (m *lossModel) packet(o *wr.Out) []byte {
	var b []byte
	if n := len(m.free); n > 0 {
		b, m.free = m.free[n-1], m.free[:n-1]
	} else {
		b = make([]byte, 8192)
	}
	b = b[:cap(b)]
	n := copy(b, o.Header())
	return b[:n+int(o.Len)+int(o.Pad)+roce.ICRCLen]
}

// couldSend is hasOutput without its excuses: whether the next packet may leave.
func (r *requester) couldSend() bool {
	if !r.hasOutput() {
		return false
	}
	if r.probe.owed() {
		return true
	}
	w := r.q.At(r.cur)
	i := r.send - w.First
	n := r.step(w, i)
	return (i != 0 || r.mayStart(w)) && !(w.Op.TakesRead() && r.rdOut >= r.maxRead) && (r.send == r.una || r.admits(w, i+n))
}
