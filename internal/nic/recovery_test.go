package nic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport/sim"
)

// overLink writes size bytes over a link in virtual time and returns how long that
// took and how many packets were sent for each that was needed.
func overLink(t *testing.T, seed uint64, size int, l sim.Link) (took time.Duration, sent float64) {
	t.Helper()
	f := nictest.New(t, nictest.Config{Hosts: 2, Net: sim.Config{Seed: seed, Trains: 16, Link: l}})
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	local, remote := a.Region(size), b.Region(size)
	start := f.Now()
	a.Post(qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, SGE: []mr.SGE{local.SGE(0, uint32(size))}, RemoteAddr: remote.Addr(), RKey: remote.RKey()})
	success(t, f, a, a.Send)
	s := a.NIC.Stats().RC
	return f.Now().Sub(start), float64(s.Requests) / float64(s.Requests-s.Retransmitted)
}

// A link of 10 Gbit/s with a round trip of 100 µs holds 30 packets of 4 KiB. A window is
// twice that, and with one packet in a hundred lost a loss costs about a window.
func TestLossCostsThePipe(t *testing.T) {
	const size, pipe, loss = 8 << 20, 30, 0.01
	link := sim.Link{Delay: 50 * time.Microsecond, Rate: 10e9, QueueBytes: 4 << 20}
	none, once := overLink(t, 1, size, link)
	require.InDelta(t, 1, once, 0.001)
	link.Loss = loss
	for seed := range uint64(3) {
		took, sent := overLink(t, seed, size, link)
		t.Logf("%.2f of the speed without loss, %.2f sent for each packet", none.Seconds()/took.Seconds(), sent)
		require.Less(t, sent, 1+loss*2*pipe*1.25)
		require.Greater(t, none.Seconds()/took.Seconds(), 0.7/(1+loss*2*pipe))
	}
}

// Who waits for completions fires a timer itself, and does not sleep a moment before.
func TestWaiterFiresTimers(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 2, Net: sim.Config{Seed: 1, Link: sim.Link{Loss: 1}}})
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	local, remote := a.Region(8), b.Region(8)
	a.Post(qp.SendWR{Op: wr.OpWrite, SGE: []mr.SGE{local.SGE(0, 8)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()})
	d := a.NIC.NewDriver()
	d.Add(a.Queue)
	const many = 1 << 20
	require.False(t, d.Patience(many), "the timer is far")
	next := a.NIC.Next()
	f.Net.Advance(next.Add(-100 * time.Microsecond))
	require.True(t, d.Patience(many))
	require.Zero(t, a.NIC.Stats().RC.EarlyTimeouts)
	f.Net.Advance(next)
	require.True(t, d.Patience(many))
	require.EqualValues(t, 1, a.NIC.Stats().RC.EarlyTimeouts)
	require.Greater(t, a.NIC.Next(), next)
}

// Who waits for a peer that is gone, on a path that lost packets before, is awake for
// the first few timers and then parks: each is twice as far as the one before.
func TestWaiterForDeadPeerParks(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 2, Net: sim.Config{Seed: 1, Link: sim.Link{Loss: 0.05, Delay: 5 * time.Microsecond}}})
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	local, remote := a.Region(1<<20), b.Region(1<<20)
	write := qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, SGE: []mr.SGE{local.SGE(0, 1<<20)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()}
	a.Post(write)
	success(t, f, a, a.Send)
	require.Positive(t, a.NIC.Stats().RC.Retransmitted)
	f.Net.SetDefaultLink(sim.Link{Loss: 1})
	a.Post(write)
	d := a.NIC.NewDriver()
	d.Add(a.Queue)
	const many, step = 1 << 20, 10 * time.Microsecond
	awake := time.Duration(0)
	for d.Patience(many) {
		f.Net.Advance(f.Now().Add(step))
		awake += step
		require.Less(t, awake, 5*time.Millisecond)
	}
	require.Positive(t, awake)
	require.Positive(t, a.NIC.Stats().RC.EarlyTimeouts)
}

// An answer that has arrived is heard before the timer fires that waits for it, also
// when nobody had a processor for longer.
func TestAnswerIsHeardBeforeTimers(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 2, Net: sim.Config{Seed: 1}})
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	local, remote := a.Region(8), b.Region(8)
	a.Post(qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, SGE: []mr.SGE{local.SGE(0, 8)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()})
	next := a.NIC.Next()
	f.Net.Advance(f.Now().Add(next.Sub(f.Now()) / 2))
	require.True(t, b.NIC.Poll(f.Now()))
	f.Net.Advance(next.Add(time.Second))
	d := a.NIC.NewDriver()
	d.Add(a.Queue)
	d.Patience(1 << 20)
	require.Zero(t, a.NIC.Stats().RC.EarlyTimeouts+a.NIC.Stats().RC.Timeouts)
	require.Len(t, a.Take(a.Send), 1)
}

// A stepped NIC knows no time but that it is polled with, also for what it hears before
// a timer fires.
func TestPollKeepsToItsTime(t *testing.T) {
	looks := 0
	f := nictest.New(t, nictest.Config{Hosts: 2, Net: sim.Config{Seed: 1}, Tune: func(_ int, c *nic.Config) {
		clock := c.Clock
		c.Clock = func() mono.Time {
			looks++
			return clock()
		}
	}})
	a, b := f.Pair(0, 1, nictest.PairConfig{MTU: roce.MTU1024})
	const size = 100 << 10 // more packets than a batch has
	local, remote := a.Region(size), b.Region(size)
	a.Post(qp.SendWR{Op: wr.OpRead, Flags: wr.Signaled, SGE: []mr.SGE{local.SGE(0, size)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()})
	next := a.NIC.Next()
	f.Net.Advance(f.Now().Add(next.Sub(f.Now()) / 2))
	require.True(t, b.NIC.Poll(f.Now()))
	f.Net.Advance(next)
	looks = 0
	require.True(t, a.NIC.Poll(f.Now()))
	require.Zero(t, looks)
	require.Len(t, a.Take(a.Send), 1)
	require.Zero(t, a.NIC.Stats().RC.EarlyTimeouts)
}
