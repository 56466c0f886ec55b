package nic_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/udp"
)

// rig is a connection between two NICs of any kind, one registered buffer each.
type rig struct {
	a, b          *nictest.End
	local, remote *mr.Region
	done          []cq.Completion
	sge           [1]mr.SGE
	wrs           []qp.SendWR
}

func newRig(tb testing.TB, x, y transport.Conn, size int) *rig {
	tb.Helper()
	f := nictest.Over(tb, x, y)
	r := &rig{done: make([]cq.Completion, 64)}
	r.a, r.b = f.Pair(0, 1, nictest.PairConfig{})
	r.local, r.remote = r.a.Region(size), r.b.Region(size)
	return r
}

// wr is a signaled request for n bytes.
func (r *rig) wr(op wr.Op, n int) qp.SendWR {
	r.sge[0] = r.local.SGE(0, uint32(n))
	return qp.SendWR{Op: op, Flags: wr.Signaled, SGE: r.sge[:], RemoteAddr: r.remote.Addr(), RKey: r.remote.RKey(), SwapAdd: 1}
}

// step drives both NICs until the sender has n completions.
func (r *rig) step(tb testing.TB, n int) {
	for n > 0 {
		r.b.NIC.Progress()
		r.a.NIC.Progress()
		k, err := r.a.Send.Poll(r.done)
		if err != nil {
			tb.Fatal(err)
		}
		for i := range k {
			if r.done[i].Status != cq.StatusSuccess {
				tb.Fatal(r.done[i].Err())
			}
		}
		n -= k
	}
}

func openUDP(tb testing.TB, addr string) *udp.Conn {
	tb.Helper()
	c, err := udp.Open(netip.MustParseAddr(addr), udp.Config{})
	require.NoError(tb, err)
	return c
}

func benchOps(b *testing.B, r *rig) {
	for _, bm := range []struct {
		op   wr.Op
		size int
	}{{wr.OpWrite, 8}, {wr.OpWrite, 4096}, {wr.OpWrite, 1 << 20}, {wr.OpRead, 4096}, {wr.OpFetchAdd, 8}} {
		b.Run(fmt.Sprintf("%v/%d", bm.op, bm.size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(bm.size))
			r.wrs = append(r.wrs[:0], r.wr(bm.op, bm.size))
			for b.Loop() {
				if err := r.a.PostSend(r.wrs); err != nil {
					b.Fatal(err)
				}
				r.step(b, 1)
			}
		})
	}
}

// BenchmarkPostToCompletion is one work request from post to completion, both
// NICs driven by one goroutine: over a memory copy, what the NICs cost; over
// loopback sockets, with what the kernel costs.
func BenchmarkPostToCompletion(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		x, y := newWire("10.0.0.1", "10.0.0.2")
		benchOps(b, newRig(b, x, y, 1<<20))
	})
	b.Run("udp", func(b *testing.B) {
		benchOps(b, newRig(b, openUDP(b, "127.88.9.1"), openUDP(b, "127.88.9.2"), 1<<20))
	})
}

// BenchmarkList posts 64 small writes with one doorbell.
func BenchmarkList(b *testing.B) {
	x, y := newWire("10.0.0.1", "10.0.0.2")
	r := newRig(b, x, y, 4096)
	r.wrs = r.wrs[:0]
	for i := range 64 {
		w := r.wr(wr.OpWrite, 64)
		if i < 63 {
			w.Flags = 0
		}
		r.wrs = append(r.wrs, w)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := r.a.PostSend(r.wrs); err != nil {
			b.Fatal(err)
		}
		r.step(b, 1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(64*b.N), "ns/write")
}

// BenchmarkStarted is the same over sockets with both NICs on goroutines of their
// own and the application blocking.
func BenchmarkStarted(b *testing.B) {
	r := newRig(b, openUDP(b, "127.88.9.3"), openUDP(b, "127.88.9.4"), 1<<20)
	for _, e := range []*nictest.End{r.a, r.b} {
		e.NIC.Start()
	}
	r.a.DriveSend()
	for _, size := range []int{8, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			r.wrs = append(r.wrs[:0], r.wr(wr.OpWrite, size))
			for b.Loop() {
				if err := r.a.PostSend(r.wrs); err != nil {
					b.Fatal(err)
				}
				if _, err := r.a.Send.Wait(context.Background(), r.done); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkManyQPs is a write of 4 KiB, one of many in flight, on one queue pair and
// in turn on a thousand, over one receive queue and over several.
func BenchmarkManyQPs(b *testing.B) {
	for _, bm := range []struct{ pairs, shards int }{{1, 1}, {1000, 1}, {1000, 4}} {
		b.Run(fmt.Sprintf("pairs=%d/shards=%d", bm.pairs, bm.shards), func(b *testing.B) {
			open := func(addr string) transport.Conn {
				c, err := udp.Open(netip.MustParseAddr(addr), udp.Config{Shards: bm.shards})
				require.NoError(b, err)
				return c
			}
			f := nictest.Over(b, open("127.88.9.5"), open("127.88.9.6"))
			m := &many{done: make([]cq.Completion, 64), wrs: make([]qp.SendWR, 1)}
			for range bm.pairs {
				x, y := f.Pair(0, 1, nictest.PairConfig{})
				m.from = append(m.from, x)
				m.src, m.dst = append(m.src, x.Region(4096)), append(m.dst, y.Region(4096))
				m.far = y.NIC
			}
			m.run(b, 2*bm.pairs+1000) // everything is made at its first use
			b.SetBytes(4096)
			b.ReportAllocs()
			b.ResetTimer()
			m.run(b, b.N)
		})
	}
}

// many is queue pairs of one NIC that write in turn.
type many struct {
	from     []*nictest.End
	src, dst []*mr.Region
	far      *nic.NIC
	wrs      []qp.SendWR
	sge      [1]mr.SGE
	done     []cq.Completion
}

// run writes n times, with up to 128 in flight.
func (m *many) run(b *testing.B, n int) {
	for posted, taken := 0, 0; taken < n; {
		for ; posted < n && posted-taken < 128; posted++ {
			i := posted % len(m.from)
			m.sge[0] = m.src[i].SGE(0, 4096)
			m.wrs[0] = qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, SGE: m.sge[:], RemoteAddr: m.dst[i].Addr(), RKey: m.dst[i].RKey()}
			if err := m.from[i].PostSend(m.wrs); err != nil {
				b.Fatal(err)
			}
		}
		m.far.Progress()
		m.from[0].NIC.Progress()
		for ; taken < posted; taken++ { // they complete in the order of posting, but for loss
			k, err := m.from[taken%len(m.from)].Send.Poll(m.done[:1])
			if err != nil {
				b.Fatal(err)
			}
			if k == 0 {
				break
			}
		}
	}
}
