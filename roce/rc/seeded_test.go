package rc

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce/wr"
)

var (
	seedFlag = flag.Uint64("rc.seed", 0, "run only this seed of TestSeeded")
	seeds    = flag.Int("rc.seeds", 150, "number of seeds of TestSeeded")
)

// lossy is two engines and a network that loses, duplicates and reorders, on
// virtual time. Half the seeds have memory that finishes late and out of order.
type lossy struct {
	t          *testing.T
	rng        *rand.Rand
	loss, more float64
	queue      []flying
	now        mono.Time
}

type flying struct {
	at mono.Time
	to *end
	p  []byte
}

func (n *lossy) collect(e *end) {
	for _, p := range e.sent {
		copies := 1
		if n.rng.Float64() < n.loss {
			copies = 0
		} else if n.rng.Float64() < n.more {
			copies = 2
		}
		for range copies {
			d := 10 * time.Microsecond
			if n.rng.Float64() < n.more {
				d += time.Duration(n.rng.IntN(300)) * time.Microsecond
			}
			n.queue = append(n.queue, flying{n.now.Add(d), e.peer, p})
		}
	}
	e.sent = nil
}

// step advances to the next event: a packet, a piece of late memory, a timer.
func (n *lossy) step(ends ...*end) bool {
	next := mono.Time(0)
	for _, f := range n.queue {
		next = mono.Earliest(next, f.at)
	}
	late := 0
	for _, e := range ends {
		next = mono.Earliest(next, e.rc.Deadline())
		late += len(e.works)
	}
	if late > 0 {
		next = mono.Earliest(next, n.now.Add(20*time.Microsecond))
	}
	if next.IsZero() {
		return false
	}
	n.now = max(n.now, next)
	for _, e := range ends {
		e.now = n.now
		e.rc.Expire(n.now)
		for len(e.works) > 0 && n.rng.IntN(3) > 0 {
			e.finishAny(n.rng)
		}
	}
	keep := n.queue[:0]
	due := []flying{}
	for _, f := range n.queue {
		if f.at > n.now {
			keep = append(keep, f)
		} else {
			due = append(due, f)
		}
	}
	n.queue = keep
	for _, f := range due {
		f.to.receive(f.p)
	}
	for _, e := range ends {
		e.drain()
		n.collect(e)
	}
	return true
}

// finishAny reports some queued work, whose bytes have moved in order, as done.
func (e *end) finishAny(rng *rand.Rand) {
	i := rng.IntN(len(e.works))
	w := e.works[i]
	e.works = append(e.works[:i:i], e.works[i+1:]...)
	e.rc.Commit(e.now, w.w.Token, wr.Done, w.result)
}

func TestSeeded(t *testing.T) {
	first, last := uint64(1), uint64(*seeds)
	if *seedFlag != 0 {
		first, last = *seedFlag, *seedFlag
	}
	for seed := first; seed <= last; seed++ {
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) { runSeed(t, seed) })
		if !ok {
			t.Fatalf("replay: go test ./roce/rc -run TestSeeded -rc.seed=%d", seed)
		}
	}
}

func runSeed(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 77))
	mtu := []int{256, 512, 1024, 4096}[rng.IntN(4)]
	a, b := newPair(t, withMTU(mtu), withSend(func(s *SendConfig) {
		s.RetryCount, s.FixedTimeout = 7, rng.IntN(2) == 0
		s.WindowPSNs = 4 + rng.IntN(60)
		s.Timeout = 14
	}))
	n := &lossy{t: t, rng: rng, now: a.now, loss: rng.Float64() * 0.3, more: rng.Float64() * 0.3}
	if a.cfg.Send.FixedTimeout {
		n.loss /= 4 // a READ gets 8 tries, half of which lose its first response at 30 %
	}
	a.recordLate, b.recordLate = seed%2 == 0, seed%2 == 0
	m := newModel(a, b, rng)
	for n.now < a.now.Add(time.Hour) {
		m.post()
		a.drain()
		b.drain()
		n.collect(a)
		n.collect(b)
		if m.finished() {
			break
		}
		require.True(t, n.step(a, b), "deadlock: nothing will happen any more")
		m.check()
		require.False(t, a.rc.Failed(), "%+v", a.rc.Cause())
	}
	require.True(t, m.finished())
	m.verify()
}

// model knows what memory must hold: WRITEs go to fresh places, so that each byte
// has one right value.
type model struct {
	a, b          *end
	rng           *rand.Rand
	posted, total int
	checked       int
	sends         []int
	recvd         int
	sum           uint64
	used          int
}

func newModel(a, b *end, rng *rand.Rand) *model {
	m := &model{a: a, b: b, rng: rng, total: 40, used: 4096}
	for i := range a.mem {
		a.mem[i] = byte(rng.Uint32())
	}
	clear(a.mem[:4096])
	return m
}

func (m *model) post() {
	for m.posted < m.total && m.a.rc.Outstanding() < 20 {
		op := wr.Op(m.rng.IntN(int(wr.OpFetchAdd) + 1))
		n := m.rng.IntN(5000)
		if m.rng.IntN(8) == 0 {
			n = 0
		}
		r := m.a.req(uint64(m.posted), op, m.used, n)
		switch op {
		case wr.OpSend, wr.OpSendImm, wr.OpSendInv, wr.OpWriteImm:
			if op == wr.OpSendInv {
				r.Op = wr.OpSend
			}
			r.Imm = uint32(m.posted)
			m.b.postRecv(uint64(m.posted), m.used, n)
			m.sends = append(m.sends, m.posted)
		case wr.OpRead:
			copy(m.b.mem[m.used:m.used+n], m.a.mem[m.used:]) // what the READ must bring back
			clear(m.a.mem[m.used : m.used+n])
		case wr.OpFetchAdd, wr.OpCmpSwap:
			r = m.a.req(uint64(m.posted), wr.OpFetchAdd, 0, 8)
			r.Spans[0].Off = uint64(8 + 8*m.posted)
			r.SwapAdd = uint64(m.posted)
			m.sum += uint64(m.posted)
			n = 0
		default: // WRITE needs nothing more
		}
		clear(m.a.mem[m.used+n : m.used+n+3])
		m.used += n + 3
		m.a.post(r)
		m.posted++
	}
}

// check: completions come once each and in order, on both sides.
func (m *model) check() {
	for ; m.checked < len(m.a.done); m.checked++ {
		c := m.a.done[m.checked]
		require.Equal(m.a.t, cq.StatusSuccess, c.Status)
		require.EqualValues(m.a.t, m.checked, c.WRID)
	}
	for ; m.recvd < len(m.b.done); m.recvd++ {
		c := m.b.done[m.recvd]
		require.Equal(m.a.t, cq.StatusSuccess, c.Status)
		require.EqualValues(m.a.t, m.sends[m.recvd], c.WRID)
	}
}

func (m *model) finished() bool {
	return m.posted == m.total && len(m.a.done) == m.total && m.a.rc.Idle() && m.b.rc.Idle()
}

func (m *model) verify() {
	m.check()
	require.Len(m.a.t, m.b.done, len(m.sends))
	require.True(m.a.t, bytes.Equal(m.a.mem[4096:m.used], m.b.mem[4096:m.used]), "bytes differ")
	require.Equal(m.a.t, m.sum, binary.NativeEndian.Uint64(m.b.mem), "each FETCH_ADD took effect once")
}
