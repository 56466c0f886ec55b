package hixl_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport/sim"
)

// A peer that dies without a word is noticed by both sides, though neither has
// anything to send, within the bound of the documentation; one that is only idle
// keeps its connection.
func TestKeepAlive(t *testing.T) {
	cfg := hixl.PeerConfig{KeepAlive: time.Second, Connect: hixl.ConnectOptions{Timeout: 14}}
	w := newWorld(t, 2, sim.Config{Link: sim.Link{Delay: time.Millisecond}}, cfg)
	p := w.peer(0, 1)
	r := w.remote(p, 1)
	w.wait(p.FetchAddAsync(r, 0, 1))
	back, err := w.ears[1].Accept(over())
	require.NoError(t, err)
	w.pass(time.Minute)
	require.EqualValues(t, 1, p.Generation())
	require.Positive(t, w.all[0].Stats().Probes)
	require.Positive(t, w.all[1].Stats().Probes)

	w.net.Cut(simAddr(0), simAddr(1))
	cut := w.net.Now()
	w.until(time.Minute, func() bool { return p.State() != hixl.PeerUp && back.State() != hixl.PeerUp })
	require.Less(t, w.net.Now().Sub(cut), 2*time.Second+8*80*time.Millisecond)
	require.ErrorIs(t, p.Err(), hixl.ErrPeerDown)

	w.net.Heal(simAddr(0), simAddr(1))
	w.until(time.Minute, func() bool { return p.State() == hixl.PeerUp && back.State() == hixl.PeerUp })
	w.wait(p.FetchAddAsync(r, 0, 1))
	require.Equal(t, p.Generation(), back.Generation())
}

// Work waits for a lost peer as long as was said, then fails at once, until it is
// back by itself.
func TestGiveUp(t *testing.T) {
	cfg := hixl.PeerConfig{Connect: hixl.ConnectOptions{Timeout: 14}, Recovery: hixl.RecoveryConfig{GiveUp: 10 * time.Second}}
	w := newWorld(t, 2, sim.Config{Link: sim.Link{Delay: time.Millisecond}}, cfg)
	p := w.peer(0, 1)
	r := w.remote(p, 1)
	w.wait(p.FetchAddAsync(r, 0, 1))
	w.net.Cut(simAddr(0), simAddr(1))
	h, err := p.FetchAddAsync(r, 0, 1)
	require.NoError(t, err)
	w.until(time.Minute, w.done(h))
	var e *hixl.TransferError
	require.ErrorAs(t, h.Err(), &e)
	require.True(t, e.Retriable)
	require.True(t, e.Executed, "nobody knows")
	waits, err := p.FetchAddAsync(r, 0, 1)
	require.NoError(t, err)
	w.until(time.Minute, w.done(waits))
	require.ErrorIs(t, waits.Err(), hixl.ErrPeerDown)
	require.ErrorAs(t, waits.Err(), &e)
	require.False(t, e.Executed, "it was never posted")
	require.Equal(t, hixl.PeerDown, p.State())
	_, err = p.FetchAddAsync(r, 0, 1)
	require.ErrorIs(t, err, hixl.ErrPeerDown)
	w.net.Heal(simAddr(0), simAddr(1))
	w.until(10*time.Minute, func() bool { return p.State() == hixl.PeerUp })
	w.wait(p.FetchAddAsync(r, 0, 1))
}

// A dialer that does not come back is forgotten; if it does after all, it is another
// peer.
func TestForget(t *testing.T) {
	cfg := hixl.PeerConfig{KeepAlive: time.Second, Connect: hixl.ConnectOptions{Timeout: 14}, Recovery: hixl.RecoveryConfig{GiveUp: 10 * time.Second}}
	w := newWorld(t, 2, sim.Config{Link: sim.Link{Delay: time.Millisecond}}, cfg)
	p := w.peer(0, 1)
	r := w.remote(p, 1)
	w.wait(p.FetchAddAsync(r, 0, 1))
	back, err := w.ears[1].Accept(over())
	require.NoError(t, err)
	w.net.Cut(simAddr(0), simAddr(1))
	w.pass(time.Minute)
	require.Equal(t, hixl.PeerClosed, back.State())
	require.ErrorIs(t, back.Err(), hixl.ErrPeerDown)
	require.Zero(t, w.all[1].Stats().Peers)
	w.net.Heal(simAddr(0), simAddr(1))
	w.until(10*time.Minute, func() bool { return p.State() == hixl.PeerUp })
	w.wait(p.FetchAddAsync(r, 0, 1))
	again, err := w.ears[1].Accept(over())
	require.NoError(t, err)
	require.NotSame(t, back, again)
	require.Equal(t, back.ID(), again.ID())
}

// crowd makes a hub, context 0, and so many peers of it, not connected yet, that share
// some NICs, on ports of their own.
func crowd(t *testing.T, peers int, cfg hixl.PeerConfig) (w *world, all []*hixl.Peer) {
	w = newWorld(t, 1, sim.Config{Seed: 1, Link: sim.Link{Delay: 100 * time.Microsecond, Jitter: time.Millisecond, Loss: 0.01}}, cfg)
	nics := make([]*hixl.Context, 8)
	for i := range nics {
		conn, err := w.net.Host(simAddr(1 + i))
		require.NoError(t, err)
		nics[i], err = hixl.Open(hixl.Config{Transport: conn, Clock: w.net.Now, Stepped: true, Peers: cfg})
		require.NoError(t, err)
		w.all = append(w.all, nics[i])
	}
	w.mem, w.ears = append(w.mem, make([]*hixl.Region, 8)...), append(w.ears, make([]*hixl.PeerListener, 8)...)
	for i := range peers {
		l, err := nics[i%len(nics)].Listen(t.Context(), fmt.Sprintf(":%d", 2000+i))
		require.NoError(t, err)
		p, err := w.all[0].Peer(l.Addr())
		require.NoError(t, err)
		all = append(all, p)
	}
	return w, all
}

// many is how many peers a context has in tests of many.
func many() int {
	if raceOn {
		return 200
	}
	return 2000
}

// Two thousand peers of one context are connected at once, and rest in little memory.
func TestManyPeers(t *testing.T) {
	peers := many()
	w, all := crowd(t, peers, hixl.PeerConfig{Seed: 1, Connect: hixl.ConnectOptions{MaxReads: 4}})
	hub := w.all[0]
	var done []*hixl.Handle
	for _, p := range all {
		for range 20 { // so that all queue pairs are made
			h, err := p.WriteAsync(hixl.Desc{})
			require.NoError(t, err)
			done = append(done, h)
		}
	}
	for _, h := range done {
		w.wait(h, nil)
	}
	require.Equal(t, peers, hub.Stats().Connected)
	clear(done)
	w.pass(3*hixl.DefaultKeepAlive + time.Second) // used in the first period, silent and probed after the second, at rest after the third
	require.Equal(t, peers, hub.Stats().Connected)
	require.GreaterOrEqual(t, hub.NIC().Stats().QPs, hixl.DefaultPeerQPs*peers)
	with := heap()
	for i := range w.all {
		w.halt(i)
	}
	used := int64(with-heap()) / int64(2*peers) // both ends are here; the network stays
	t.Logf("%d bytes a peer", used)
	require.NotNil(t, w.net)
	if !raceOn {
		require.Less(t, used, int64(8<<10))
	}
}

func heap() uint64 {
	var m runtime.MemStats
	for range 3 { // what pools and finalizers let go of is collected later
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Two thousand peers, of whom a few hundred may stay: those that are used do, and
// whoever was disconnected is back when it is used.
func TestEvictionOfMany(t *testing.T) {
	peers := many()
	cfg := hixl.PeerConfig{Seed: 1, HighWater: peers / 4, LowWater: peers / 8, IdleAfter: time.Second, QPs: 1}
	w, all := crowd(t, peers, cfg)
	hub, first := w.all[0], all[0]
	use := func(some []*hixl.Peer) {
		var done []*hixl.Handle
		for _, p := range some {
			h, err := p.WriteAsync(hixl.Desc{})
			require.NoError(t, err)
			done = append(done, h)
		}
		for _, h := range done {
			w.wait(h, nil)
		}
	}
	use(all)
	for range 10 {
		w.pass(300 * time.Millisecond)
		use(all[:10])
	}
	require.EqualValues(t, peers-peers/8, hub.Stats().Evictions)
	require.Equal(t, peers/8, hub.Stats().Connected)
	require.Equal(t, peers, hub.Stats().Peers, "nobody is forgotten")
	require.EqualValues(t, 1, first.Generation(), "it was used all the time")
	use(all)
	require.EqualValues(t, 1, first.Generation())
	require.Equal(t, hixl.PeerUp, all[peers-1].State())
}

// Above the waterline idle peers are disconnected, and come back when they are
// used.
func TestEviction(t *testing.T) {
	w := newWorld(t, 13, sim.Config{Link: sim.Link{Delay: time.Millisecond}}, hixl.PeerConfig{HighWater: 8, LowWater: 4, IdleAfter: time.Second, KeepAlive: time.Second})
	hub := w.all[0]
	for i := range 12 {
		p := w.peer(0, 1+i)
		w.wait(p.FetchAddAsync(w.remote(p, 1+i), 0, 1))
		w.pass(100 * time.Millisecond)
	}
	w.pass(5 * time.Second)
	require.LessOrEqual(t, hub.Stats().Connected, 8)
	require.Positive(t, hub.Stats().Evictions)
	p := w.peer(0, 1)
	require.Equal(t, hixl.PeerIdle, p.State(), "the longest unused")
	r := w.remote(p, 1)
	w.wait(p.FetchAddAsync(r, 0, 1))
	require.EqualValues(t, 2, p.Generation())
	require.EqualValues(t, 2, w.mem[1].Bytes()[0])
}
