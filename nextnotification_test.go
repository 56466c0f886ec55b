package hixl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport/sim"
)

// One who asks for the notifications of all peers gets them all, in turns, those from
// before too; and the end of a context is told.
func TestNextNotification(t *testing.T) {
	w := newWorld(t, 4, sim.Config{Seed: 1, Link: bad}, hixl.PeerConfig{Seed: 1})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	tell := func(from int, imm uint32) {
		p := w.peer(from, 0)
		w.wait(p.WriteImmAsync(hixl.Desc{Remote: w.remote(p, 0)}, imm))
	}
	tell(1, 10)
	tell(1, 11)
	tell(2, 20)
	got := map[*hixl.Peer][]uint32{}
	var order []*hixl.Peer
	c := w.all[0]
	next := func() error {
		p, n, err := c.NextNotification(over)
		if err == nil {
			got[p] = append(got[p], n.Imm)
			order = append(order, p)
		}
		return err
	}
	for range 3 {
		require.NoError(t, next())
	}
	require.ErrorIs(t, next(), context.Canceled)
	require.NotEqual(t, order[0], order[1], "they take turns")
	tell(3, 30)
	require.NoError(t, next())
	require.ErrorIs(t, next(), context.Canceled)
	require.Len(t, got, 3)
	w.halt(0)
	require.ErrorIs(t, next(), hixl.ErrClosed)
}

// A peer that closes says so: the other end learns it after one way, not by silence.
func TestCloseIsTold(t *testing.T) {
	for _, end := range []string{"peer", "context"} {
		t.Run(end, func(t *testing.T) {
			w := newWorld(t, 2, sim.Config{Link: sim.Link{Delay: time.Millisecond}}, hixl.PeerConfig{Seed: 1})
			p := w.peer(0, 1)
			w.wait(p.FetchAddAsync(w.remote(p, 1), 0, 1))
			at, ok := p.ListenAddress()
			require.True(t, ok)
			require.Equal(t, w.addr(1), at)
			back, err := w.ears[1].Accept(t.Context())
			require.NoError(t, err)
			at, ok = back.ListenAddress()
			require.True(t, ok, "it can be dialed from here")
			require.Equal(t, w.addr(0), at)
			if end == "peer" {
				require.NoError(t, back.Close())
			} else {
				w.halt(1)
			}
			w.pass(1500 * time.Microsecond)
			require.Equal(t, hixl.PeerConnecting, p.State())
			require.ErrorIs(t, p.Err(), hixl.ErrPeerDown)
		})
	}
}

// A pinned region works as any other, and its limit is told.
func TestRegisterPinned(t *testing.T) {
	c := openContext(t, "127.88.53.1", hixl.PeerConfig{})
	r, err := c.RegisterPinned(make([]byte, 10000), hixl.LocalWrite)
	e := (*hixl.PinError)(nil)
	if errors.As(err, &e) { // another system, or a limit below three pages
		require.True(t, e.Limited || errors.Is(err, errors.ErrUnsupported), err)
		return
	}
	require.NoError(t, err)
	require.NoError(t, r.Deregister(t.Context()))
	require.NoError(t, r.Deregister(t.Context()))
	r, err = c.RegisterPinned(nil, 0)
	if err == nil {
		require.NoError(t, r.Deregister(t.Context()))
	}
}
