package hixl_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport/sim"
)

// Peers that become idle above the waterline are disconnected when their time has
// come, though nobody connects and nobody is probed; those that dialed this side do
// not count.
func TestEvictionByTime(t *testing.T) {
	cfg := hixl.PeerConfig{HighWater: 8, LowWater: 4, IdleAfter: time.Second, KeepAlive: hixl.None}
	w := newWorld(t, 13, sim.Config{Link: sim.Link{Delay: time.Millisecond}}, cfg)
	hub := w.all[0]
	var hold *hixl.Peer
	for i := range 12 {
		p := w.peer(0, 1+i)
		w.wait(p.FetchAddAsync(w.remote(p, 1+i), 0, 1))
		hold = p
	}
	require.Equal(t, 12, hub.Stats().Connected)
	for range 20 { // one is used all the time
		w.pass(100 * time.Millisecond)
		w.wait(hold.WriteAsync(hixl.Desc{}))
	}
	require.Equal(t, 4, hub.Stats().Connected)
	require.EqualValues(t, 8, hub.Stats().Evictions)
	require.Equal(t, hixl.PeerUp, hold.State())

	for i := range 12 { // none of them is hub's to disconnect
		p := w.peer(1+i, 0)
		w.wait(p.FetchAddAsync(w.remote(p, 0), 0, 1))
	}
	w.pass(time.Minute)
	require.EqualValues(t, 8, hub.Stats().Evictions)
}
