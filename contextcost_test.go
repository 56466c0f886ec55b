package hixl_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
)

// costRounds is how often the two levels are measured in turns, at least.
const costRounds = 9

// verbsPair is a queue pair between the NICs of two contexts, beside those of their
// peers, and memory at both ends.
type verbsPair struct {
	qp   *hixl.QP
	cq   *hixl.CQ
	near *hixl.Region
	far  *hixl.Region
	done [64]hixl.Completion
	sge  [1]hixl.SGE
}

func newVerbsPair(b *testing.B, from, to *hixl.Context, near, far *hixl.Region) *verbsPair {
	queue := func(c *hixl.Context) hixl.QPConfig {
		q, err := c.NIC().CreateCQ(256)
		require.NoError(b, err)
		return hixl.QPConfig{PD: c.PD(), SendCQ: q, RecvCQ: q}
	}
	l, err := to.NIC().Listen(soon(b), ":18600", hixl.ListenConfig{Accept: hixl.AcceptOptions{QPConfig: queue(to)}})
	require.NoError(b, err)
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept(soon(b))
		accepted <- err
	}()
	mine := queue(from)
	conn, err := from.NIC().Dial(soon(b), l.Addr().String(), hixl.DialOptions{QPConfig: mine})
	require.NoError(b, err)
	require.NoError(b, <-accepted)
	return &verbsPair{qp: conn.QP, cq: mine.SendCQ, near: near, far: far}
}

// write moves n messages of size bytes, depth of them outstanding.
func (v *verbsPair) write(b *testing.B, n, size, depth int) {
	ctx := context.Background()
	for posted, done := 0, 0; done < n; {
		for ; posted < n && posted < done+depth; posted++ {
			v.sge[0] = v.near.SGE(0, uint32(size))
			if err := v.qp.PostSend(hixl.SendWR{
				Op: hixl.OpWrite, Flags: hixl.Signaled, SGE: v.sge[:], RemoteAddr: v.far.Addr(), RKey: v.far.RKey(),
			}); err != nil {
				b.Fatal(err)
			}
		}
		k, err := v.cq.Wait(ctx, v.done[:])
		if err != nil {
			b.Fatal(err)
		}
		for i := range k {
			if err := v.done[i].Err(); err != nil {
				b.Fatal(err)
			}
		}
		done += k
	}
}

// peerWrite is the same by the peer of a context.
func peerWrite(b *testing.B, p *hixl.Peer, d hixl.Desc, n, depth int) {
	ctx := context.Background()
	if depth == 1 {
		for range n {
			if err := p.Write(ctx, d); err != nil {
				b.Fatal(err)
			}
		}
		return
	}
	flight := make([]*hixl.Handle, depth)
	for i := range n + depth {
		if h := flight[i%depth]; h != nil {
			if err := h.Wait(ctx); err != nil {
				b.Fatal(err)
			}
		}
		if flight[i%depth] = nil; i < n {
			h, err := p.WriteAsync(d)
			if err != nil {
				b.Fatal(err)
			}
			flight[i%depth] = h
		}
	}
}

// BenchmarkContextCost compares a context's transfers with the verbs below it, in
// turns: by the same two NICs, one queue pair each, from the same memory to the same,
// each posted and waited for by one goroutine, which is the one that receives. It
// reports medians over the turns, and not differences of medians: of the time of one
// operation at either level, and of what the context adds to it in its turn.
func BenchmarkContextCost(b *testing.B) {
	for _, c := range []struct {
		name        string
		size, depth int
		turn        int // operations
	}{{"latency/64", 64, 1, 2000}, {"bandwidth/1MiB", 1 << 20, 8, 40}} {
		b.Run(c.name, func(b *testing.B) {
			from, to, peer, _ := couple(b, "127.88.49", hixl.PeerConfig{QPs: 1}) // as many as the verbs have
			near, far := alloc(b, from, c.size), alloc(b, to, c.size)
			remote, err := peer.Import(to.Describe(far))
			require.NoError(b, err)
			verbs := newVerbsPair(b, from, to, near, far)
			desc := hixl.Desc{Local: near, Remote: remote, Len: uint64(c.size)}
			ways := [2]func(int){
				func(n int) { verbs.write(b, n, c.size, c.depth) },
				func(n int) { peerWrite(b, peer, desc, n, c.depth) },
			}
			for i, way := range ways {
				wanted := bytes.Repeat([]byte{byte(1 + i)}, c.size)
				copy(near.Bytes(), wanted)
				way(c.turn)
				require.True(b, bytes.Equal(wanted, far.Bytes()), "what was written has not arrived")
			}
			var times [2][]float64
			var more, ratios []float64
			b.ResetTimer()
			for round := range max(b.N/(2*c.turn), costRounds) {
				var ns [2]float64
				for i := range ways {
					way := (i + round) % 2 // either is first as often as not
					began := time.Now()
					ways[way](c.turn)
					ns[way] = float64(time.Since(began)) / float64(c.turn)
				}
				times[0], times[1] = append(times[0], ns[0]), append(times[1], ns[1])
				more, ratios = append(more, ns[1]-ns[0]), append(ratios, ns[1]/ns[0])
			}
			b.StopTimer()
			b.ReportMetric(middle(times[0]), "verbs-ns/op")
			b.ReportMetric(middle(times[1]), "context-ns/op")
			b.ReportMetric(middle(more), "more-ns/op")
			b.ReportMetric(middle(ratios), "ratio")
		})
	}
}

func middle(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
