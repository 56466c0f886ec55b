package nic_test

import (
	"bytes"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/faults"
	"github.com/gohixl/hixl/transport/tap"
	"github.com/gohixl/hixl/transport/udp"
)

const shards = 4

func openSharded(tb testing.TB, addr string) *udp.Conn {
	tb.Helper()
	c, err := udp.Open(netip.MustParseAddr(addr), udp.Config{Shards: shards})
	require.NoError(tb, err)
	require.Equal(tb, shards, c.Info().Shards)
	return c
}

// unsteered is a carrier that brings every packet by whatever part is quickest.
type unsteered struct{ *udp.Conn }

func (u unsteered) Shards() []transport.Reader {
	return []transport.Reader{u.Conn, u.Conn, u.Conn, u.Conn}
}

// Many queue pairs, each driven by who waits for it and in both directions, over
// several receive queues: packets come by the right one and in order, and where
// they do not, nothing is wrong but slower.
func TestShards(t *testing.T) {
	t.Run("steered", func(t *testing.T) {
		f := nictest.Over(t, openSharded(t, "127.88.11.1"), openSharded(t, "127.88.11.2"))
		manyPairs(t, f)
		for _, n := range f.NICs {
			s := n.Stats()
			require.Len(t, s.Shards, shards)
			sum := uint64(0)
			for i, sh := range s.Shards {
				require.Positive(t, sh.RxPackets, "shard %d", i)
				sum += sh.RxPackets
			}
			require.Equal(t, s.RxPackets, sum)
			require.Zero(t, s.RC.OutOfSequence)
			require.Zero(t, s.Dropped())
		}
	})
	t.Run("wrapped", func(t *testing.T) {
		var captures [2]bytes.Buffer
		conns := make([]transport.Conn, 2)
		for i, addr := range []string{"127.88.11.9", "127.88.11.10"} {
			lossy, err := faults.Wrap(openSharded(t, addr), faults.Config{Loss: 0.01, Seed: uint64(i + 1)})
			require.NoError(t, err)
			conns[i] = tap.Wrap(lossy, &captures[i], tap.Config{})
		}
		f := nictest.Over(t, conns[0], conns[1])
		manyPairs(t, f)
		for i, n := range f.NICs {
			s := n.Stats()
			require.Len(t, s.Shards, shards)
			for k, sh := range s.Shards {
				require.Positive(t, sh.RxPackets, "shard %d", k)
			}
			require.Positive(t, s.RC.Retransmitted)
			require.NoError(t, n.Close())
			require.Greater(t, captures[i].Len(), int(s.RxBytes))
		}
	})
	t.Run("unsteered", func(t *testing.T) {
		manyPairs(t, nictest.Over(t, unsteered{openUDP(t, "127.88.11.3")}, unsteered{openUDP(t, "127.88.11.4")}))
	})
	t.Run("operations", func(t *testing.T) {
		f := nictest.Over(t, openSharded(t, "127.88.11.5"), openSharded(t, "127.88.11.6"))
		for _, n := range f.NICs {
			n.Start()
		}
		everyOperation(t, f, 1)
	})
}

func manyPairs(t *testing.T, f *nictest.Fabric) {
	for _, n := range f.NICs {
		n.Start()
	}
	const pairs, rounds, size = 2 * shards, 30, 20_000
	var wg sync.WaitGroup
	for p := range pairs {
		a, b := f.Pair(0, 1, nictest.PairConfig{})
		for _, e := range [][2]*nictest.End{{a, b}, {b, a}} {
			from, to := e[0], e[1]
			from.DriveSend()
			src, dst := from.Region(size), to.Region(size)
			wg.Go(func() {
				for i := range rounds {
					fill := bytes.Repeat([]byte{byte(p + i + 1)}, size)
					copy(src.Bytes(), fill)
					from.Post(qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{src.SGE(0, size)}, RemoteAddr: dst.Addr(), RKey: dst.RKey(), Flags: wr.Signaled})
					if c := waitFor(t, from.Send, 1)[0]; c.Status != cq.StatusSuccess {
						t.Error(c.Err())
						return
					}
					if !bytes.Equal(fill, dst.Bytes()) {
						t.Error("wrong bytes")
						return
					}
				}
			})
		}
	}
	wg.Wait()
}

// Who waits on a completion queue receives for its queue pairs, not for others.
func TestDriverKeepsToItsShards(t *testing.T) {
	f := nictest.Over(t, openSharded(t, "127.88.11.7"), openSharded(t, "127.88.11.8"))
	ends := map[int]*nictest.End{} // by shard
	for len(ends) < 2 {
		a, b := f.Pair(0, 1, nictest.PairConfig{})
		shard := int(b.QPN()) % shards
		if ends[shard] == nil {
			b.DriveSend()
			ends[shard] = b
			dst := b.Region(8)
			src := a.Region(8)
			a.Post(qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{src.SGE(0, 8)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()})
		}
	}
	for shard, e := range ends {
		before := f.NICs[1].Stats()
		require.Zero(t, before.Shards[shard].RxPackets)
		_, err := e.Send.Poll(make([]cq.Completion, 1))
		require.NoError(t, err)
		after := f.NICs[1].Stats()
		for i := range after.Shards {
			want := before.Shards[i].RxPackets
			if i == shard {
				want++
			}
			require.Equal(t, want, after.Shards[i].RxPackets, "shard %d", i)
		}
	}
}
