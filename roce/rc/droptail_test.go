package rc

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce/wr"
)

// modelQueue is a link that is slower than what feeds it, and its queue, which
// drops what does not fit.
type modelQueue struct {
	rate  float64 // bytes a nanosecond
	limit int     // bytes
	delay time.Duration
	fed   float64 // bytes a nanosecond that a sender's own link takes
	in    []modelPacket
	left  []mono.Time // by host: when its own link is free
	busy  mono.Time   // until the queue is empty
}

// put is a packet that host i gives to its own link.
func (q *modelQueue) put(i int, at mono.Time, b []byte) {
	at = max(at, q.left[i]).Add(time.Duration(float64(len(b)) / q.fed))
	q.left[i] = at
	p := modelPacket{at: at, b: b, to: i ^ 1}
	k, _ := slices.BinarySearchFunc(q.in, at+1, func(p modelPacket, at mono.Time) int { return cmp.Compare(p.at, at) })
	q.in = slices.Insert(q.in, k, p)
}

// forward takes the next packet, and returns when.
func (q *modelQueue) forward(m *lossModel) mono.Time {
	p := q.in[0]
	q.in = q.in[1:]
	now := p.at
	q.busy = max(q.busy, now)
	if q.busy.Sub(now).Seconds()*1e9*q.rate+float64(len(p.b)) > float64(q.limit) {
		m.free = append(m.free, p.b)
		return now
	}
	q.busy = q.busy.Add(time.Duration(float64(len(p.b)) / q.rate))
	p.at = q.busy.Add(q.delay)
	m.hosts[p.to].in = append(m.hosts[p.to].in, p)
	return now
}

// bottleneck is such a link, and how many connections share it.
type bottleneck struct {
	gbit, kib int
	rtt       time.Duration
	flows     int
	mtu       int
}

type bottleneckResult struct {
	used  float64 // of the link
	extra float64 // packets sent for each that was needed
	least float64 // what the slowest connection has of an equal share
}

// run lets connections WRITE through the link for so long, and measures after the
// first warm.
func (l bottleneck) run(t *testing.T, seed uint64, warm, span time.Duration) bottleneckResult {
	cost := modelCost{8 * time.Microsecond, 300, 300, 4 * time.Microsecond}
	m := &lossModel{t: t, rng: rand.New(rand.NewPCG(seed, 3)), link: l.rtt / 2, batch: wr.NewBatch(256, 1<<18)}
	m.queue = &modelQueue{rate: float64(l.gbit) / 8, limit: l.kib << 10, delay: l.rtt / 2, fed: 40.0 / 8, left: make([]mono.Time, 2*l.flows)}
	ends := make([]*end, l.flows)
	for i := range ends {
		a, b := newPair(t, withMTU(l.mtu), func(a, _ *Config) {
			a.Send = SendConfig{FirstPSN: 0xFFFFFE, MaxRead: 4, Timeout: 14, RetryCount: 7, RNRRetry: 7}
			a.SendQueue = 128
		})
		ends[i] = a
		m.hosts = append(m.hosts, modelHost{rc: a.rc, cost: cost}, modelHost{rc: b.rc, cost: cost})
	}
	type count struct{ sent, acked uint64 }
	begun := make([]count, l.flows)
	now := ends[0].now
	start, measured := now, false
	posted := make([]int, l.flows)
	for now.Sub(start) < warm+span {
		for i, a := range ends {
			for ; posted[i] < 8; posted[i]++ {
				if err := a.rc.Post(now, a.req(1, wr.OpWrite, 0, 1<<20)); err != nil {
					t.Fatal(err)
				}
			}
		}
		now = m.step(now)
		for i, a := range ends {
			posted[i] -= len(a.rc.Completions())
			a.rc.ClearCompletions()
			a.peer.rc.ClearCompletions()
			if a.rc.Failed() {
				t.Fatalf("failed at %v: %+v", now.Sub(start), a.rc.Cause())
			}
		}
		if !measured && now.Sub(start) >= warm {
			measured = true
			for i, a := range ends {
				begun[i] = count{a.rc.Stats().Requests, a.rc.req.una}
			}
		}
	}
	var sent, acked, least uint64
	for i, a := range ends {
		n := a.rc.req.una - begun[i].acked
		sent += a.rc.Stats().Requests - begun[i].sent
		acked += n
		if i == 0 || n < least {
			least = n
		}
	}
	capacity := m.queue.rate * float64(span) / float64(l.mtu+16)
	return bottleneckResult{
		used: float64(acked) / capacity, extra: float64(sent) / float64(acked),
		least: float64(least) * float64(l.flows) / float64(acked),
	}
}

// Before a queue that drops what does not fit, the window stays below what fills it:
// most of the link is used, and little is sent for nothing. A queue that holds less
// than a round trip, or few packets for each connection, costs more.
func TestBottleneck(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		bottleneck
		used, extra float64 // at least, at most
	}{
		{bottleneck{1, 64, 50 * us, 1, 1024}, 0.85, 1.25},
		{bottleneck{1, 128, 500 * us, 1, 1024}, 0.85, 1.25},
		{bottleneck{1, 256, 2000 * us, 1, 1024}, 0.85, 1.25},
		{bottleneck{1, 1024, 2000 * us, 1, 4096}, 0.85, 1.25},
		{bottleneck{10, 64, 50 * us, 1, 4096}, 0.75, 1.3},
		{bottleneck{10, 128, 100 * us, 1, 1024}, 0.8, 1.25},
		{bottleneck{10, 128, 100 * us, 1, 4096}, 0.85, 1.25},
		{bottleneck{10, 1024, 500 * us, 1, 4096}, 0.85, 1.25},
		{bottleneck{10, 64, 100 * us, 1, 1024}, 0.35, 1.9},
		{bottleneck{1, 128, 100 * us, 4, 1024}, 0.85, 1.25},
		{bottleneck{1, 256, 500 * us, 4, 1024}, 0.85, 1.25},
		{bottleneck{10, 256, 100 * us, 4, 1024}, 0.75, 1.35},
		{bottleneck{10, 1024, 500 * us, 4, 4096}, 0.85, 1.25},
		{bottleneck{10, 128, 100 * us, 4, 4096}, 0.55, 2.1},
	} {
		var sum bottleneckResult
		const seeds = 3
		for seed := range uint64(seeds) {
			r := c.run(t, seed+1, 50*c.rtt+40*time.Millisecond, 200*c.rtt+40*time.Millisecond)
			sum.used += r.used / seeds
			sum.extra += r.extra / seeds
			sum.least += r.least / seeds
		}
		t.Logf("%2d Gbit/s, %4d KiB, %5v, %d of mtu %d: %.2f of the link, %.2f sent for each packet, the slowest has %.2f of its share",
			c.gbit, c.kib, c.rtt, c.flows, c.mtu, sum.used, sum.extra, sum.least)
		require.Greater(t, sum.used, c.used, "%+v", c)
		require.Less(t, sum.extra, c.extra, "%+v", c)
	}
}
