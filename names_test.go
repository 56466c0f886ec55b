package hixl_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport/sim"
)

// Regions are found by name, also those that are published after connecting; one
// that is gone is refused, not used.
func TestNamedRegions(t *testing.T) {
	ctx := soon(t)
	a, b, toB, _ := couple(t, "127.88.45", hixl.PeerConfig{})
	_, err := toB.Region(ctx, "weights")
	require.ErrorIs(t, err, hixl.ErrNoRegion)
	require.ErrorContains(t, err, "weights")
	far := alloc(t, b, 8192)
	require.NoError(t, b.Publish("weights", far))
	w, err := toB.Region(ctx, "weights")
	require.NoError(t, err)
	require.EqualValues(t, 8192, w.Len())
	require.Equal(t, "weights", w.Name())
	require.EqualValues(t, 1, w.Descriptor().Generation)
	require.NoError(t, toB.Write(ctx, hixl.Desc{Inline: []byte("v1"), Remote: w}))
	require.Equal(t, "v1", string(far.Bytes()[:2]))
	same, err := toB.Region(ctx, "weights")
	require.NoError(t, err)
	require.Same(t, w, same)

	// The owner deregisters it: whoever looked it up is told.
	require.NoError(t, far.Deregister(ctx))
	for !w.Stale() {
		time.Sleep(time.Millisecond)
	}
	err = toB.Write(ctx, hixl.Desc{Inline: []byte("v2"), Remote: w})
	require.ErrorIs(t, err, hixl.ErrStale)
	require.Equal(t, hixl.PeerUp, toB.State(), "found here, so nothing broke")
	require.ErrorIs(t, w.Refresh(ctx), hixl.ErrNoRegion)

	// A new one takes the name.
	require.NoError(t, b.Publish("weights", alloc(t, b, 4096)))
	require.NoError(t, w.Refresh(ctx))
	require.EqualValues(t, 4096, w.Len())
	require.EqualValues(t, 2, w.Descriptor().Generation)
	require.NoError(t, toB.Write(ctx, hixl.Desc{Inline: []byte("v2"), Remote: w}))
	b.Unpublish("weights")
	_, err = toB.Region(ctx, "weights")
	require.ErrorIs(t, err, hixl.ErrNoRegion)

	require.Error(t, b.Publish("", far))
	require.ErrorIs(t, b.Publish("gone", far), hixl.ErrStale)
	require.Error(t, a.Publish("foreign", alloc(t, b, 4096)))
}

// A peer that restarts is another incarnation: its regions are refused until they
// are looked up again, old descriptors for ever.
func TestRestart(t *testing.T) {
	for _, follow := range []bool{false, true} {
		w := newWorld(t, 2, sim.Config{Link: sim.Link{Delay: 100 * time.Microsecond}}, hixl.PeerConfig{Recovery: hixl.RecoveryConfig{FollowRestarts: follow}})
		require.NoError(t, w.all[1].Publish("weights", w.mem[1]))
		p := w.peer(0, 1)
		r := w.wait(p.StartRegion("weights")).Region()
		old := w.remote(p, 1)
		w.wait(p.WriteAsync(hixl.Desc{Inline: []byte("old"), Remote: r}))
		id := p.ID()

		w.halt(1)
		w.until(time.Minute, func() bool { return p.State() == hixl.PeerConnecting })
		h, err := p.WriteAsync(hixl.Desc{Inline: []byte("lost"), Remote: r})
		require.NoError(t, err, "it waits for the peer")
		w.boot(1)
		require.NoError(t, w.all[1].Publish("weights", w.mem[1]))
		w.until(time.Minute, w.done(h))
		require.ErrorIs(t, h.Err(), hixl.ErrPeerRestarted, "what was begun for the old incarnation is not done to the new one")
		require.EqualValues(t, 2, p.Generation())
		require.NotEqual(t, id, p.ID())
		require.True(t, old.Stale())
		_, err = p.WriteAsync(hixl.Desc{Inline: []byte("lost"), Remote: old})
		require.ErrorIs(t, err, hixl.ErrStale)
		if !follow {
			require.True(t, r.Stale())
			w.wait(p.StartRegion("weights"))
		} else {
			w.until(time.Minute, func() bool { return !r.Stale() })
		}
		require.Zero(t, w.mem[1].Bytes()[0])
		w.wait(p.WriteAsync(hixl.Desc{Inline: []byte("new"), Remote: r}))
		require.Equal(t, "new", string(w.mem[1].Bytes()[:3]))
		w.halt(0)
		w.halt(1)
	}
}

func TestDescriptorForms(t *testing.T) {
	d := hixl.Descriptor{Context: hixl.ContextID{1, 15: 2}, ID: 3, Generation: 4, RKey: 5, Addr: 6 << 40, Len: 7, Access: hixl.RemoteRead}
	var got hixl.Descriptor
	text, err := d.MarshalText()
	require.NoError(t, err)
	require.Equal(t, d.String(), string(text))
	require.NoError(t, got.UnmarshalText(text))
	require.Equal(t, d, got)
	bin, err := d.MarshalBinary()
	require.NoError(t, err)
	require.NoError(t, got.UnmarshalBinary(bin))
	require.Equal(t, d, got)
	for _, bad := range [][]byte{nil, text[1:], append([]byte("hixl-region1:zz"), text[15:]...)} {
		require.ErrorIs(t, got.UnmarshalText(bad), hixl.ErrDescriptor)
	}
	bin[0] = 9
	require.ErrorIs(t, got.UnmarshalBinary(bin), hixl.ErrDescriptor)
	d.Addr, d.Len = 1<<63, 1<<63
	bin, _ = d.MarshalBinary()
	require.ErrorIs(t, got.UnmarshalBinary(bin), hixl.ErrDescriptor)
}

func FuzzDescriptor(f *testing.F) {
	b, _ := hixl.Descriptor{Len: 1}.MarshalBinary()
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var d hixl.Descriptor
		if d.UnmarshalBinary(b) == nil {
			again, err := d.MarshalBinary()
			require.NoError(t, err)
			require.Equal(t, b, again)
		}
	})
}

// What is gone costs neither side anything: names and regions come and go by the
// thousand on a connection that stays. Who has a region that is gone may look its
// name up again, and has the same.
func TestNamesComeAndGo(t *testing.T) {
	w := newWorld(t, 2, sim.Config{Link: sim.Link{Delay: 10 * time.Microsecond}}, hixl.PeerConfig{})
	p := w.peer(0, 1)
	find := func(name string) *hixl.RemoteRegion { return w.wait(p.StartRegion(name)).Region() }
	once := func(name string) *hixl.RemoteRegion {
		r := alloc(t, w.all[1], 4096)
		require.NoError(t, w.all[1].Publish(name, r))
		found := find(name)
		require.NoError(t, r.Deregister(t.Context()))
		w.until(time.Second, found.Stale)
		return found
	}
	kept := once("kept")
	for i := range 200 { // what grows by need grows now
		once(fmt.Sprint("early", i))
	}
	const n, most = 3000, 3000 * 32
	grown := int64(most)
	for round := 0; round < 5 && grown >= most; round++ { // a map may grow, and what other tests have left; a leak comes each time
		before := heap()
		for i := range n {
			once(fmt.Sprint("name", round, " ", i))
		}
		grown = int64(heap()) - int64(before)
	}
	require.Less(t, grown, int64(most), "bytes")

	// A region that another has followed under its name is told to be gone as well.
	first, second := alloc(t, w.all[1], 4096), alloc(t, w.all[1], 8192)
	require.NoError(t, w.all[1].Publish("kept", first))
	require.Same(t, kept, find("kept"))
	require.False(t, kept.Stale())
	require.NoError(t, w.all[1].Publish("kept", second))
	require.NoError(t, first.Deregister(t.Context()))
	w.until(time.Second, kept.Stale)
	require.Same(t, kept, find("kept"))
	require.EqualValues(t, 8192, kept.Len())
}

// A lookup ends though it was never sent: when its peer is closed while it is being
// connected again, and when it is canceled.
func TestLookupEndsUnsent(t *testing.T) {
	w := newWorld(t, 2, sim.Config{Link: sim.Link{Delay: time.Millisecond}}, hixl.PeerConfig{})
	p := w.peer(0, 1)
	w.wait(p.WriteAsync(hixl.Desc{}))
	w.halt(1)
	w.until(time.Minute, func() bool { return p.State() == hixl.PeerConnecting })
	given, err := p.StartRegion("weights")
	require.NoError(t, err)
	lost, err := p.StartRegion("weights")
	require.NoError(t, err)
	require.NoError(t, given.Cancel(over()))
	require.ErrorIs(t, given.Err(), hixl.ErrCanceled)
	require.NoError(t, p.Close())
	done, err := lost.Poll()
	require.True(t, done)
	require.ErrorIs(t, err, hixl.ErrPeerDown)
}
