package nic_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/internal/hosttest"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport/udp"
)

// live starts two NICs on loopback sockets.
func live(t *testing.T, a, b string) *nictest.Fabric {
	t.Helper()
	f := nictest.Over(t, openUDP(t, a), openUDP(t, b))
	for _, n := range f.NICs {
		n.Start()
	}
	return f
}

func waitFor(t *testing.T, q *cq.Queue, n int) (got []cq.Completion) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	got = make([]cq.Completion, n) // and not one more: others may wait too
	for have := 0; have < n; {
		k, err := q.Wait(ctx, got[have:])
		require.NoError(t, err)
		have += k
	}
	return got
}

// Every operation over real sockets: between two NICs, and within one over IPv6.
func TestLoopback(t *testing.T) {
	t.Run("IPv4", func(t *testing.T) { everyOperation(t, live(t, "127.88.1.1", "127.88.1.2"), 1) })
	t.Run("IPv6", func(t *testing.T) {
		hosttest.NeedIPv6(t)
		conn, err := udp.Open(netip.IPv6Loopback(), udp.Config{})
		require.NoError(t, err)
		f := nictest.Over(t, conn)
		f.NICs[0].Start()
		everyOperation(t, f, 0)
	})
}

func everyOperation(t *testing.T, f *nictest.Fabric, other int) {
	a, b := f.Pair(0, other, nictest.PairConfig{})
	const size = 3 << 20
	local, remote := a.Region(2*size), b.Region(size)
	want := random(1, size)
	copy(local.Bytes(), want)
	b.Receive(qp.RecvWR{ID: 1, SGE: []mr.SGE{remote.SGE(0, 5000)}}, qp.RecvWR{ID: 2})
	a.Post(
		qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{local.SGE(0, size)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()},
		qp.SendWR{Op: wr.OpRead, Flags: wr.Signaled, SGE: []mr.SGE{local.SGE(size, size)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()},
	)
	require.NoError(t, ptr(waitFor(t, a.Send, 1)[0]).Err())
	require.True(t, bytes.Equal(want, local.Bytes()[size:]))
	a.Post(
		qp.SendWR{Op: wr.OpSendImm, Imm: 7, SGE: []mr.SGE{local.SGE(10, 5000)}},
		qp.SendWR{Op: wr.OpWriteImm, Imm: 8, SGE: []mr.SGE{local.SGE(20, 9)}, RemoteAddr: remote.Addr() + 8000, RKey: remote.RKey()},
		qp.SendWR{Op: wr.OpFetchAdd, SwapAdd: 3, SGE: []mr.SGE{local.SGE(0, 8)}, RemoteAddr: remote.Addr() + 8192, RKey: remote.RKey()},
		qp.SendWR{Op: wr.OpCmpSwap, Flags: wr.Signaled, Compare: 1, SwapAdd: 3, SGE: []mr.SGE{local.SGE(8, 8)}, RemoteAddr: remote.Addr() + 8192, RKey: remote.RKey()},
	)
	before := binary.NativeEndian.Uint64(want[8192:])
	require.NoError(t, ptr(waitFor(t, a.Send, 1)[0]).Err())
	got := waitFor(t, b.Recv, 2)
	require.Equal(t, []uint64{1, 2}, []uint64{got[0].WRID, got[1].WRID})
	require.Equal(t, []uint32{7, 8}, []uint32{got[0].Imm, got[1].Imm})
	require.True(t, bytes.Equal(want[10:5010], remote.Bytes()[:5000]))
	require.True(t, bytes.Equal(want[20:29], remote.Bytes()[8000:8009]))
	require.Equal(t, before, binary.NativeEndian.Uint64(local.Bytes()))
	require.Equal(t, before+3, binary.NativeEndian.Uint64(local.Bytes()[8:]))
	require.Zero(t, ptr(a.NIC.Stats()).Dropped()+ptr(b.NIC.Stats()).Dropped())
}

// Many goroutines post on many queue pairs, in both directions and of all kinds,
// while others wait: each gets its own completions, and every counter is right.
func TestManyPosters(t *testing.T) {
	f := live(t, "127.88.2.1", "127.88.2.2")
	const pairs, posters, each = 4, 3, 60
	var wg sync.WaitGroup
	var words []*mr.Region
	for range pairs {
		a, b := f.Pair(0, 1, nictest.PairConfig{QP: qp.Config{}})
		a.DriveSend()
		local, remote := a.Region(1<<20), b.Region(1<<20)
		back, target := b.Region(1<<20), a.Region(1<<20)
		words = append(words, remote)
		for p := range posters {
			wg.Go(func() {
				for i := range each {
					off := uint64(p) * 100000
					a.Post(
						qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{local.SGE(off, 50000)}, RemoteAddr: remote.Addr() + 4096 + off, RKey: remote.RKey()},
						qp.SendWR{ID: uint64(i), Op: wr.OpFetchAdd, Flags: wr.Signaled, SwapAdd: 1, SGE: []mr.SGE{local.SGE(900000+8*uint64(p), 8)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()},
					)
					if err := ptr(waitFor(t, a.Send, 1)[0]).Err(); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Go(func() {
			for range each {
				b.Post(qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, SGE: []mr.SGE{back.SGE(0, 200000)}, RemoteAddr: target.Addr(), RKey: target.RKey()})
				if err := ptr(waitFor(t, b.Send, 1)[0]).Err(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, r := range words {
		require.Equal(t, uint64(posters*each), binary.NativeEndian.Uint64(r.Bytes()))
	}
}

// Close in the middle of everything: posters get an error or a flushed completion,
// nobody hangs, no goroutine stays (TestMain looks).
func TestCloseWhilePosting(t *testing.T) {
	f := live(t, "127.88.3.1", "127.88.3.2")
	var wg sync.WaitGroup
	for range 3 {
		a, b := f.Pair(0, 1, nictest.PairConfig{})
		local, remote := a.Region(1<<20), b.Region(1<<20)
		wg.Go(func() {
			for {
				err := a.PostSend([]qp.SendWR{{Op: wr.OpWrite, Flags: wr.Signaled, SGE: sges(local, 1<<20), RemoteAddr: remote.Addr(), RKey: remote.RKey()}})
				if err != nil {
					return
				}
				if waitFor(t, a.Send, 1)[0].Status != cq.StatusSuccess {
					return
				}
			}
		})
	}
	for f.NICs[0].Stats().TxPackets < 3000 {
		runtime.Gosched()
	}
	require.NoError(t, f.NICs[0].Close())
	wg.Wait()
	require.NoError(t, f.NICs[0].Close())
	_, err := f.NICs[0].CreateQP(qp.Config{})
	require.ErrorIs(t, err, nic.ErrClosed)
}

// The peer goes away without a word: a typed error that names it, in time.
func TestPeerDies(t *testing.T) {
	f := live(t, "127.88.4.1", "127.88.4.2")
	a, b := f.Pair(0, 1, nictest.PairConfig{Retry: 2, Timeout: 12}) // 16.8 ms
	local, remote := a.Region(8<<20), b.Region(8<<20)
	for i := range uint64(4) {
		a.Post(qp.SendWR{ID: i, Op: wr.OpWrite, Flags: wr.Signaled, SGE: sges(local, 8<<20), RemoteAddr: remote.Addr(), RKey: remote.RKey()})
	}
	require.NoError(t, b.NIC.Conn().Close()) // as if killed, so that nobody gets the next one
	a.Post(qp.SendWR{ID: 4, Op: wr.OpWrite, Flags: wr.Signaled, SGE: sges(local, 8), RemoteAddr: remote.Addr(), RKey: remote.RKey()})
	for _, c := range waitFor(t, a.Send, 5) {
		if c.Status == cq.StatusSuccess || c.Status == cq.StatusFlushed {
			continue
		}
		require.ErrorIs(t, c.Err(), cq.ErrRetryExceeded)
		require.ErrorContains(t, c.Err(), "127.88.4.2")
	}
	require.Equal(t, qp.Err, a.State())
}

// Late memory whose completions come from goroutines of its own.
func TestLateMemoryOnGoroutines(t *testing.T) {
	f := live(t, "127.88.5.1", "127.88.5.2")
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	const size = 1 << 20
	late := [2]*devicetest.Late{}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range late {
		late[i] = devicetest.NewLate(devicetest.LateConfig{Size: size, Seed: uint64(i), Prompt: 0.3})
		wg.Go(func() {
			for now := mono.Time(1); ; now += mono.Time(100 * time.Microsecond) {
				late[i].Step(now)
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Microsecond):
				}
			}
		})
	}
	local, remote := a.Register(late[0]), b.Register(late[1])
	host := a.Region(size)
	for round := range 5 {
		want := random(uint64(round), size)
		copy(host.Bytes(), want)
		req := func(op wr.Op, r *mr.Region) qp.SendWR {
			return qp.SendWR{Op: op, Flags: wr.Signaled, SGE: sges(r, size), RemoteAddr: remote.Addr(), RKey: remote.RKey()}
		}
		a.Post(req(wr.OpWrite, host))
		require.NoError(t, ptr(waitFor(t, a.Send, 1)[0]).Err())
		a.Post(req(wr.OpRead, local))
		require.NoError(t, ptr(waitFor(t, a.Send, 1)[0]).Err())
		require.True(t, bytes.Equal(want, late[0].Snapshot()))
		clear(host.Bytes())
		a.Post(req(wr.OpWrite, local), req(wr.OpRead, host))
		for _, c := range waitFor(t, a.Send, 2) {
			require.NoError(t, c.Err())
		}
		require.True(t, bytes.Equal(want, host.Bytes()))
	}
	for _, n := range f.NICs {
		require.NoError(t, n.Close())
	}
	close(stop)
	wg.Wait()
	require.Zero(t, local.Lent()+remote.Lent())
}

// Thousands of queue pairs, most of them idle, cost little and all work.
func TestThousandsOfQueuePairs(t *testing.T) {
	f := live(t, "127.88.6.1", "127.88.6.2")
	const n = 2000
	send, err := cq.New(n)
	require.NoError(t, err)
	pd := [2]*mr.PD{f.NICs[0].AllocPD(), f.NICs[1].AllocPD()}
	var region *mr.Region
	var all []*nictest.End
	for i := range n {
		cfg := nictest.PairConfig{PDs: pd, QP: qp.Config{SendSink: send, RecvSink: send}}
		a, b := f.Pair(0, 1, cfg)
		if i == 0 {
			region = b.Region(8 * n)
		}
		all = append(all, a)
	}
	for i, a := range all {
		w := qp.Word(uint64(i))
		a.Post(qp.SendWR{ID: uint64(i), Op: wr.OpWrite, Flags: wr.Signaled, Inline: w[:], RemoteAddr: region.Addr() + uint64(8*i), RKey: region.RKey()})
	}
	for _, c := range waitFor(t, send, n) {
		require.NoError(t, c.Err())
	}
	for i := range n {
		require.Equal(t, uint64(i), binary.NativeEndian.Uint64(region.Bytes()[8*i:]))
	}
}

// A READ reads before the WRITE behind it writes, also while the responder's own
// application drains the same queue pair from other goroutines.
func TestReadBeforeWriteUnderContention(t *testing.T) {
	f := live(t, "127.88.7.1", "127.88.7.2")
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	const size = 100000
	local, remote := a.Region(2*size), b.Region(size)
	back, target := b.Region(1<<18), a.Region(1<<18)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			b.Post(qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, SGE: sges(back, 1<<18), RemoteAddr: target.Addr(), RKey: target.RKey()})
			waitFor(t, b.Send, 1)
		}
	})
	for i := range 200 {
		for k := range size {
			local.Bytes()[size+k] = byte(i + 1)
		}
		a.Post(
			qp.SendWR{Op: wr.OpRead, SGE: []mr.SGE{local.SGE(0, size)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()},
			qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, SGE: []mr.SGE{local.SGE(size, size)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()},
		)
		require.NoError(t, ptr(waitFor(t, a.Send, 1)[0]).Err())
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, size), local.Bytes()[:size], "round %d", i)
	}
	cancel()
	wg.Wait()
}
