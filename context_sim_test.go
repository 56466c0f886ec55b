package hixl_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/transport/sim"
)

// world is a simulated network of stepped contexts, driven by the test on virtual
// time.
type world struct {
	t    testing.TB
	net  *sim.Network
	cfg  hixl.PeerConfig
	all  []*hixl.Context // nil: not running
	mem  []*hixl.Region  // of each, 64 KiB
	ears []*hixl.PeerListener
}

func newWorld(t testing.TB, contexts int, net sim.Config, cfg hixl.PeerConfig) *world {
	t.Helper()
	w := &world{t: t, net: sim.New(net), cfg: cfg}
	w.all, w.mem, w.ears = make([]*hixl.Context, contexts), make([]*hixl.Region, contexts), make([]*hixl.PeerListener, contexts)
	for i := range contexts {
		w.boot(i)
	}
	t.Cleanup(func() {
		for i := range w.all {
			w.halt(i)
		}
	})
	return w
}

// boot starts context i, which listens.
func (w *world) boot(i int) {
	w.t.Helper()
	conn, err := w.net.Host(simAddr(i))
	require.NoError(w.t, err)
	cfg := w.cfg
	if cfg.Seed != 0 {
		cfg.Seed += uint64(i)
	}
	w.all[i], err = hixl.Open(hixl.Config{Transport: conn, Clock: w.net.Now, Stepped: true, MaxRegions: 1024, MaxQPs: 8192, Peers: cfg})
	require.NoError(w.t, err)
	w.mem[i] = alloc(w.t, w.all[i], 64<<10)
	w.ears[i], err = w.all[i].Listen(w.t.Context(), ":18515")
	require.NoError(w.t, err)
}

// halt ends context i in order.
func (w *world) halt(i int) {
	if w.all[i] != nil {
		require.NoError(w.t, w.all[i].Close())
		w.all[i] = nil
	}
}

func (w *world) addr(i int) netip.AddrPort { return netip.AddrPortFrom(simAddr(i), 18515) }

// settle lets all contexts do what can be done at the present time.
func (w *world) settle() {
	for worked := true; worked; {
		worked = false
		for _, c := range w.all {
			if c != nil {
				worked = c.Poll(w.net.Now()) || worked
			}
		}
	}
}

// step settles and moves time to the next thing that happens; false: nothing will.
func (w *world) step() bool {
	w.settle()
	next := w.net.Next()
	for _, c := range w.all {
		if c != nil {
			next = mono.Earliest(next, c.Next())
		}
	}
	if next.IsZero() {
		return false
	}
	w.net.Advance(max(next, w.net.Now()))
	return true
}

// until steps until done, for at most a time.
func (w *world) until(limit time.Duration, done func() bool) {
	w.t.Helper()
	for end := w.net.Now().Add(limit); ; {
		w.settle()
		if done() {
			return
		}
		require.True(w.t, w.step(), "the network has come to rest")
		require.Less(w.t, w.net.Now(), end, "not done after %v", limit)
	}
}

// pass lets a time go by.
func (w *world) pass(d time.Duration) {
	for end := w.net.Now().Add(d); w.net.Now() < end; {
		w.settle()
		next := mono.Earliest(w.net.Next(), end)
		for _, c := range w.all {
			if c != nil {
				next = mono.Earliest(next, c.Next())
			}
		}
		w.net.Advance(min(max(next, w.net.Now()+1), end))
	}
	w.settle()
}

func (w *world) peer(from, to int) *hixl.Peer {
	w.t.Helper()
	p, err := w.all[from].Peer(w.addr(to))
	require.NoError(w.t, err)
	return p
}

func (w *world) done(h *hixl.Handle) func() bool {
	return func() bool {
		done, _ := h.Poll()
		return done
	}
}

// wait steps until a handle is done, without error.
func (w *world) wait(h *hixl.Handle, err error) *hixl.Handle {
	w.t.Helper()
	require.NoError(w.t, err)
	w.until(10*time.Minute, w.done(h))
	require.NoError(w.t, h.Err())
	return h
}

// remote is the memory of another context, known without asking.
func (w *world) remote(p *hixl.Peer, of int) *hixl.RemoteRegion {
	w.t.Helper()
	r, err := p.Import(w.all[of].Describe(w.mem[of]))
	require.NoError(w.t, err)
	return r
}

// Transfers over a network that loses, doubles, delays, reorders and damages.
func TestContextOverBadNetwork(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, 3, sim.Config{Seed: seed, Link: bad, HideHeaders: seed%2 == 0}, hixl.PeerConfig{SendQueue: 16, Seed: seed + 1})
			var all []*hixl.Handle
			start := func(h *hixl.Handle, err error) {
				require.NoError(t, err)
				all = append(all, h)
			}
			for from := range 3 { // to all others, and to oneself
				copy(w.mem[from].Bytes()[4096*from:], fmt.Sprintf("from %d", from))
				for to := range 3 {
					p := w.peer(from, to)
					r := w.remote(p, to)
					at := uint64(4096 * from)
					for range 20 {
						start(p.FetchAddAsync(r, 32768, 1))
					}
					start(p.WriteAsync(hixl.Desc{Local: w.mem[from], LocalOff: at, Remote: r, RemoteOff: at, Len: 4096}))
				}
			}
			for _, h := range all {
				w.wait(h, nil)
			}
			for i := range 3 {
				require.EqualValues(t, 60, binary.NativeEndian.Uint64(w.mem[i].Bytes()[32768:]), "exactly once each")
				for from := range 3 {
					require.Equal(t, fmt.Sprintf("from %d", from), string(w.mem[i].Bytes()[4096*from:4096*from+6]))
				}
			}
		})
	}
}

// The same seed gives the same course of events.
func TestContextReplays(t *testing.T) {
	run := func() (times []hixl.Time) {
		w := newWorld(t, 2, sim.Config{Seed: 3, Link: sim.Link{Delay: time.Millisecond}}, hixl.PeerConfig{Seed: 5})
		defer w.halt(0)
		p := w.peer(0, 1)
		r := w.remote(p, 1)
		for range 10 {
			w.wait(p.FetchAddAsync(r, 0, 1))
			times = append(times, w.net.Now())
		}
		return times
	}
	require.Equal(t, run(), run())
}

// A call that waits is refused where nobody would drive the NIC.
func TestSteppedContextDoesNotWait(t *testing.T) {
	w := newWorld(t, 2, sim.Config{}, hixl.PeerConfig{})
	_, err := w.all[0].Dial(t.Context(), w.addr(1).String())
	require.ErrorIs(t, err, hixl.ErrStepped)
	p := w.peer(0, 1)
	require.ErrorIs(t, p.Write(t.Context(), hixl.Desc{}), hixl.ErrStepped)
	_, err = p.Region(t.Context(), "weights")
	require.ErrorIs(t, err, hixl.ErrStepped)
}
