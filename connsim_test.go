package hixl_test

import (
	"context"
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

// fabric is a network of stepped NICs, driven by the test on virtual time.
type fabric struct {
	t     testing.TB
	net   *sim.Network
	hosts []*host
	tick  time.Duration // the least that a step moves time
}

func newFabric(t testing.TB, hosts int, cfg sim.Config, tune ...func(int, *hixl.Config)) *fabric {
	t.Helper()
	f := &fabric{t: t, net: sim.New(cfg)}
	for i := range hosts {
		conn, err := f.net.Host(simAddr(i))
		require.NoError(t, err)
		c := hixl.Config{Transport: conn, Clock: f.net.Now, Stepped: true, MaxRegions: 64}
		for _, change := range tune {
			change(i, &c)
		}
		f.hosts = append(f.hosts, newHost(t, c))
	}
	return f
}

func simAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 93, byte(i >> 8), byte(i)}) }

// settle lets all NICs do what can be done at the present time.
func (f *fabric) settle() {
	for worked := true; worked; {
		worked = false
		for _, h := range f.hosts {
			worked = h.nic.Poll(f.net.Now()) || worked
		}
	}
}

// step settles and moves time to the next thing that happens; false: nothing will.
func (f *fabric) step() bool {
	f.settle()
	next := f.net.Next()
	for _, h := range f.hosts {
		next = mono.Earliest(next, h.nic.Next())
	}
	if next.IsZero() {
		return false
	}
	f.net.Advance(max(next, f.net.Now().Add(f.tick)))
	return true
}

// until steps until done, for at most a time.
func (f *fabric) until(limit time.Duration, done func() bool) {
	f.t.Helper()
	for end := f.net.Now().Add(limit); ; {
		f.settle()
		if done() {
			return
		}
		require.True(f.t, f.step(), "the network has come to rest")
		require.Less(f.t, f.net.Now(), end, "not done after %v", limit)
	}
}

// rest steps until nothing is left to happen.
func (f *fabric) rest(limit time.Duration) {
	f.t.Helper()
	for end := f.net.Now().Add(limit); f.step(); {
		require.Less(f.t, f.net.Now(), end, "not at rest after %v", limit)
	}
}

// empty checks that no host holds anything of a connection.
func (f *fabric) empty() {
	f.t.Helper()
	for i, h := range f.hosts {
		s := h.nic.ConnStats()
		s.Usage.Listeners = 0
		require.Zero(f.t, s.Usage, "host %d", i)
		require.Zero(f.t, s.HeldQPNs, "host %d", i)
		require.Zero(f.t, h.nic.Stats().QPs, "host %d", i)
	}
}

// over is a context that has ended: it makes polls of calls that wait.
func over() context.Context { return ended }

var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (f *fabric) dial(from int, to netip.AddrPort, o hixl.DialOptions) *hixl.Conn {
	f.t.Helper()
	if o.QPConfig.PD == nil && o.QP == nil {
		o.QPConfig = f.hosts[from].config()
	}
	c, err := f.hosts[from].nic.StartDial(to, o)
	require.NoError(f.t, err)
	return c
}

// pair connects host 0 with host 1.
func (f *fabric) pair(d hixl.DialOptions, a hixl.AcceptOptions) (dialed, accepted *hixl.Conn) {
	f.t.Helper()
	l := f.hosts[1].listen(f.t, ":18515", a)
	dialed = f.dial(0, l.Addr(), d)
	f.until(2*time.Minute, func() bool {
		if c, err := l.Accept(over()); err == nil {
			accepted = c
		}
		return accepted != nil && closed(dialed.Established())
	})
	require.NoError(f.t, l.Close())
	return dialed, accepted
}

// exchange writes eight bytes that name the connection to where it has a place, and
// reads them back.
func (f *fabric) exchange(from, to int, c *hixl.Conn, n uint64) {
	f.t.Helper()
	a, b := f.hosts[from], f.hosts[to]
	place := n % 4096 * 8
	binary.NativeEndian.PutUint64(a.mem.Bytes()[place:], n)
	require.NoError(f.t, c.PostSend(
		hixl.SendWR{ID: n, Op: hixl.OpWrite, SGE: []hixl.SGE{a.mem.SGE(place, 8)}, RemoteAddr: b.mem.Addr() + place, RKey: b.mem.RKey()},
		hixl.SendWR{ID: n, Op: hixl.OpRead, SGE: []hixl.SGE{a.mem.SGE(place+32768, 8)}, RemoteAddr: b.mem.Addr() + place, RKey: b.mem.RKey()},
	))
	for left := 2; left > 0; left-- {
		var wc [1]hixl.Completion
		f.until(2*time.Minute, func() bool { got, _ := a.cq.Poll(wc[:]); return got == 1 })
		require.NoError(f.t, wc[0].Err())
		require.Equal(f.t, n, wc[0].WRID)
	}
	require.Equal(f.t, n, binary.NativeEndian.Uint64(b.mem.Bytes()[place:]))
	require.Equal(f.t, n, binary.NativeEndian.Uint64(a.mem.Bytes()[place+32768:]))
}

var bad = sim.Link{Delay: 20 * time.Microsecond, Jitter: 200 * time.Microsecond, Loss: 0.1, Duplicate: 0.1, Reorder: 0.2, ReorderBy: 2 * time.Millisecond, Corrupt: 0.02}

// A connection comes about, carries data both ways and ends, over a network that
// loses, doubles, delays, reorders and damages; and nothing of it is left.
func TestConnectOverBadNetwork(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newFabric(t, 2, sim.Config{Seed: seed, Link: bad, HideHeaders: seed%2 == 0})
			c, s := f.pair(hixl.DialOptions{PrivateData: []byte{byte(seed), 0}}, hixl.AcceptOptions{PrivateData: []byte{0, byte(seed)}})
			require.Equal(t, []byte{byte(seed), 0}, s.PrivateData(), "its exact length too")
			require.Equal(t, []byte{0, byte(seed)}, c.PrivateData())
			f.exchange(0, 1, c, 7)
			f.exchange(1, 0, s, 8)
			if seed%3 == 0 {
				require.NoError(t, s.Close())
				f.until(5*time.Minute, func() bool { return closed(c.Done()) })
			} else {
				require.Error(t, c.Disconnect(over()), "begun, not waited for")
				f.until(5*time.Minute, func() bool { return closed(c.Done()) && closed(s.Done()) })
				require.Equal(t, hixl.StateError, s.State())
				require.ErrorIs(t, s.Err(), hixl.ErrDisconnected)
				require.ErrorContains(t, s.Err(), "by the peer")
				require.NoError(t, s.Close())
			}
			require.Equal(t, hixl.StateError, c.State())
			require.NoError(t, c.Close())
			f.rest(10 * time.Minute)
			f.empty()
		})
	}
}
