package nic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport/sim"
)

// narrow is a fabric whose hosts share 128 KiB a path and whose receive queues hold
// twice that.
func narrow(t *testing.T, hosts int) *nictest.Fabric {
	return nictest.New(t, nictest.Config{
		Hosts: hosts, Net: sim.Config{RecvQueue: 256 << 10, Trains: 16, Link: sim.Link{Delay: 20 * time.Microsecond}},
		Tune: func(_ int, c *nic.Config) { c.PathWindow = 128 << 10 },
	})
}

// stream is a connection and the region that its WRITEs go through.
type stream struct {
	*nictest.End
	local, remote *mr.Region
	done          int
}

func newStream(f *nictest.Fabric, a, b int, size int) *stream {
	x, y := f.Pair(a, b, nictest.PairConfig{QP: qp.Config{MaxSendWR: 128}})
	s := &stream{End: x, local: x.Region(size), remote: y.Region(size)}
	copy(s.local.Bytes(), random(uint64(x.QPN()), size))
	return s
}

// write posts the region as WRITEs of n bytes.
func (s *stream) write(n int) {
	for at := 0; at < len(s.local.Bytes()); at += n {
		s.Post(qp.SendWR{
			Op: wr.OpWrite, Flags: wr.Signaled, SGE: []mr.SGE{s.local.SGE(uint64(at), uint32(n))},
			RemoteAddr: s.remote.Addr() + uint64(at), RKey: s.remote.RKey(),
		})
	}
}

func (s *stream) collect() int {
	s.done += len(s.Take(s.Send))
	return s.done
}

// Fifty queue pairs with 12 MiB to send at once overflow no receive queue of
// 256 KiB, nothing of it is sent twice, and all advance alike.
func TestPathIsShared(t *testing.T) {
	f := narrow(t, 2)
	const pairs, messages, size = 50, 64, 4096
	var all []*stream
	for range pairs {
		s := newStream(f, 0, 1, messages*size)
		s.write(size)
		all = append(all, s)
	}
	sum := func() (n int) {
		for _, s := range all {
			n += s.collect()
		}
		return n
	}
	f.RunUntil(time.Second, func() bool { return sum() >= pairs*messages/2 })
	for i, s := range all {
		require.InDelta(t, messages/2, s.done, messages/2-8, "queue pair %d", i)
	}
	f.RunUntil(time.Second, func() bool { return sum() == pairs*messages })
	for _, s := range all {
		require.Equal(t, s.local.Bytes(), s.remote.Bytes())
	}
	for _, n := range f.NICs {
		st := n.Stats()
		require.Zero(t, st.Transport.RxOverflow)
		require.Zero(t, st.RC.Retransmitted)
		require.Zero(t, st.RC.EarlyTimeouts)
	}
}

// READs, whose answers fill our own queue, and long messages, which stop in the
// middle, share a path likewise.
func TestPathSharedByLongMessages(t *testing.T) {
	f := narrow(t, 2)
	const pairs, size = 10, 1 << 20
	var all []*stream
	for range pairs {
		s := newStream(f, 0, 1, size)
		s.write(size)
		all = append(all, s)
	}
	back := newStream(f, 1, 0, size)
	back.Post(qp.SendWR{
		Op: wr.OpRead, Flags: wr.Signaled, SGE: []mr.SGE{back.local.SGE(0, size)}, RemoteAddr: back.remote.Addr(), RKey: back.remote.RKey(),
	})
	copy(back.remote.Bytes(), random(7, size))
	f.RunUntil(time.Second, func() bool {
		n := back.collect()
		for _, s := range all {
			n += s.collect()
		}
		return n == pairs+1
	})
	for _, s := range append(all, back) {
		require.Equal(t, s.local.Bytes(), s.remote.Bytes())
	}
	for _, n := range f.NICs {
		require.Zero(t, n.Stats().Transport.RxOverflow)
		require.Zero(t, n.Stats().RC.EarlyTimeouts, "whoever stops in the middle of a message asks for an answer")
	}
}

// Whoever gets no answer does not keep the others from sending: neither a queue
// pair whose peer is gone, nor one that is closed with all of the path in flight.
func TestPathOfSilentPeers(t *testing.T) {
	f := narrow(t, 2)
	const size = 1 << 20
	x, y := f.Pair(0, 1, nictest.PairConfig{})
	gone := &stream{End: x, local: x.Region(size), remote: y.Region(size)}
	y.Close()
	gone.write(size)
	s := newStream(f, 0, 1, size)
	s.write(64 << 10)
	f.RunUntil(100*time.Millisecond, func() bool { return s.collect() == 16 })
	require.Equal(t, s.local.Bytes(), s.remote.Bytes())

	closing := newStream(f, 0, 1, size)
	closing.write(size)
	next := newStream(f, 0, 1, size)
	next.write(64 << 10)
	start := f.Now()
	closing.Close()
	f.RunUntil(10*time.Millisecond, func() bool { return next.collect() == 16 })
	require.Less(t, f.Now().Sub(start), 5*time.Millisecond)
	require.Equal(t, next.local.Bytes(), next.remote.Bytes())
}
