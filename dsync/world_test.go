package dsync

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/syncproto"
	"github.com/gohixl/hixl/transport/sim"
)

const everything = hixl.LocalWrite | hixl.RemoteRead | hixl.RemoteWrite | hixl.RemoteAtomic

// bad is a network that loses, doubles, delays and reorders.
var bad = sim.Link{Delay: 20 * time.Microsecond, Jitter: 200 * time.Microsecond, Loss: 0.05, Duplicate: 0.05, Reorder: 0.1, ReorderBy: 2 * time.Millisecond}

// world is a home and users, each a stepped context on a simulated network.
type world struct {
	t       *testing.T
	net     *sim.Network
	all     []*hixl.Context
	stopped []bool
	home    *hixl.Region
	users   []*user
}

func worldAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 77, 0, byte(1 + i)}), 18515)
}

// newWorld makes a home, context 0, which is a user as well, and further users.
func newWorld(t *testing.T, seed uint64, users int, link sim.Link) *world {
	w := &world{t: t, net: sim.New(sim.Config{Seed: seed, Link: link})}
	for i := range users {
		conn, err := w.net.Host(worldAddr(i).Addr())
		require.NoError(t, err)
		c, err := hixl.Open(hixl.Config{Transport: conn, Clock: w.net.Now, Stepped: true, MaxRegions: 64, MaxQPs: 256, Peers: hixl.PeerConfig{Seed: 1 + 100*seed + uint64(i)}})
		require.NoError(t, err)
		w.all, w.stopped = append(w.all, c), append(w.stopped, false)
		_, err = c.Listen(t.Context(), ":18515")
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		for _, c := range w.all {
			require.NoError(t, c.Close())
		}
	})
	var err error
	w.home, err = w.all[0].Alloc(4096, everything)
	require.NoError(t, err)
	return w
}

// remote is the home's region as context i reaches it.
func (w *world) remote(i int) *hixl.RemoteRegion {
	p, err := w.all[i].Peer(worldAddr(0))
	require.NoError(w.t, err)
	r, err := p.Import(w.all[0].Describe(w.home))
	require.NoError(w.t, err)
	return r
}

// user is a machine at work on a stepped context.
type user struct {
	w    *world
	i    int
	at   place
	m    syncproto.Machine
	h    *hixl.Handle
	op   syncproto.Op // of h
	wake hixl.Time
	// rest is called when the machine rests, and says whether it gave it work.
	rest func(now hixl.Time) bool
	// after is called after each result.
	after func(now hixl.Time)
	// failed is called when an operation has failed.
	failed func(err error)
}

func (w *world) user(i int, at place, m syncproto.Machine) *user {
	u := &user{w: w, i: i, at: at, m: m}
	w.users = append(w.users, u)
	return u
}

// turn does what can be done now.
func (u *user) turn(now hixl.Time) bool {
	if u.w.stopped[u.i] || u.wake > now {
		return false
	}
	if u.h != nil {
		done, err := u.h.Poll()
		if !done {
			return false
		}
		word := u.h.Result()
		u.h = nil
		u.told(now, word, err)
		return true
	}
	switch op := u.m.Next(now); op.Kind {
	case syncproto.None:
		return u.rest(now)
	case syncproto.Pause:
		u.wake = op.At
	default:
		var err error
		u.op = op
		if u.h, err = u.at.r.Peer().Start(u.at.transfer(op)); err != nil {
			u.told(now, 0, err)
		}
	}
	return true
}

func (u *user) told(now hixl.Time, word uint64, err error) {
	if err != nil {
		u.m.Unknown(now)
		u.wake = now.Add(time.Millisecond)
		if u.failed != nil {
			u.failed(err)
		}
	} else {
		u.m.Done(now, u.at.result(u.op, word))
	}
	if u.after != nil {
		u.after(now)
	}
}

// run lets the world go on for a time.
func (w *world) run(d time.Duration, each func(now hixl.Time)) {
	for end := w.net.Now().Add(d); w.net.Now() < end; {
		now := w.net.Now()
		for worked := true; worked; {
			worked = false
			for i, c := range w.all {
				if !w.stopped[i] {
					worked = c.Poll(now) || worked
				}
			}
			for _, u := range w.users {
				worked = u.turn(now) || worked
			}
		}
		each(now)
		next := mono.Earliest(w.net.Next(), end)
		for i, c := range w.all {
			if !w.stopped[i] {
				next = mono.Earliest(next, c.Next())
			}
		}
		for _, u := range w.users {
			if !w.stopped[u.i] && u.wake > now {
				next = mono.Earliest(next, u.wake)
			}
		}
		w.net.Advance(min(max(next, now+1), end))
	}
}
