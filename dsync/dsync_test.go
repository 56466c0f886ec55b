package dsync_test

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/dsync"
)

const everything = hixl.LocalWrite | hixl.RemoteRead | hixl.RemoteWrite | hixl.RemoteAtomic

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// pair opens a home and a user on real sockets, and returns the home's region as it
// is and as both reach it.
func pair(t *testing.T, net string) (mem *hixl.Region, there, self *hixl.RemoteRegion) {
	t.Helper()
	open := func(addr string) *hixl.Context {
		c, err := hixl.Open(hixl.Config{
			Address: netip.MustParseAddr(addr),
			Peers:   hixl.PeerConfig{Connect: hixl.ConnectOptions{Timeout: 18}}, // 1 s: a machine may stand still
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		return c
	}
	home, user := open(net+".1"), open(net+".2")
	l, err := home.Listen(soon(t), ":18515")
	require.NoError(t, err)
	mem, err = home.Alloc(4096, everything)
	require.NoError(t, err)
	require.NoError(t, home.Publish("sync", mem))
	reach := func(c *hixl.Context) *hixl.RemoteRegion {
		p, err := c.Dial(soon(t), l.Addr().String())
		require.NoError(t, err)
		r, err := p.Region(soon(t), "sync")
		require.NoError(t, err)
		return r
	}
	return mem, reach(user), reach(home)
}

func TestLock(t *testing.T) {
	ctx := soon(t)
	mem, there, self := pair(t, "127.88.70")
	require.NoError(t, dsync.InitLock(mem, 64, time.Minute))
	a, err := dsync.OpenLock(ctx, there, 64)
	require.NoError(t, err)
	b, err := dsync.OpenLock(ctx, self, 64)
	require.NoError(t, err)
	require.Equal(t, time.Minute, b.Duration())

	// Local and remote users exclude each other: a plain variable is safe.
	var wg sync.WaitGroup
	n, tokens := 0, []uint64{}
	for _, l := range []*dsync.Lock{a, a, b, b} {
		wg.Go(func() {
			for range 25 {
				x, err := l.Acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				n++
				tokens = append(tokens, x.Token())
				_ = x.Release(ctx) // on a machine that stands still it may be late
			}
		})
	}
	wg.Wait()
	require.Equal(t, 100, n)
	for i := 1; i < len(tokens); i++ {
		require.Greater(t, tokens[i], tokens[i-1])
	}
}

// A holder that does nothing loses the lock, and learns of it; one that renews does
// not.
func TestLeaseExpires(t *testing.T) {
	ctx := soon(t)
	mem, there, self := pair(t, "127.88.61")
	require.NoError(t, dsync.InitLock(mem, 0, 50*time.Millisecond))
	a, err := dsync.OpenLock(ctx, there, 0)
	require.NoError(t, err)
	b, err := dsync.OpenLock(ctx, self, 0)
	require.NoError(t, err)
	dead, err := a.Acquire(ctx)
	require.NoError(t, err)
	_, err = b.TryAcquire(ctx)
	require.ErrorIs(t, err, dsync.ErrHeld)
	next, err := b.Acquire(ctx)
	require.NoError(t, err)
	require.Greater(t, next.Token(), dead.Token())
	require.False(t, dead.Held())
	require.ErrorIs(t, dead.Renew(ctx), dsync.ErrLeaseLost)
	require.ErrorIs(t, dead.Release(ctx), dsync.ErrLeaseLost)
	require.True(t, dead.Until().IsZero())
	require.NoError(t, next.Release(ctx))

	keep, stop := context.WithCancel(ctx)
	kept, err := a.Acquire(ctx)
	require.NoError(t, err)
	first := kept.Until()
	done := make(chan error, 1)
	go func() { done <- kept.Keep(keep) }()
	for kept.Until().Equal(first) {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-done; err == nil {
		require.NotErrorIs(t, kept.Release(ctx), dsync.ErrHeld)
	}
}

func TestCounter(t *testing.T) {
	ctx := soon(t)
	mem, there, self := pair(t, "127.88.62")
	require.NoError(t, dsync.InitCounter(mem, 0, 5))
	var wg sync.WaitGroup
	seen := make([]map[uint64]bool, 2)
	for i, r := range []*hixl.RemoteRegion{there, self} {
		c, err := dsync.OpenCounter(ctx, r, 0)
		require.NoError(t, err)
		seen[i] = make(map[uint64]bool)
		wg.Go(func() {
			for range 100 {
				v, err := c.Add(ctx, 1)
				if err != nil {
					t.Error(err)
				}
				seen[i][v] = true
			}
		})
	}
	wg.Wait()
	for v := range seen[0] {
		require.False(t, seen[1][v], "each number once")
	}
	c, err := dsync.OpenCounter(ctx, there, 0)
	require.NoError(t, err)
	v, err := c.Load(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 205, v)
	_, err = c.Add(ctx, ^uint64(0)) // less one
	require.NoError(t, err)
	v, err = c.Load(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 204, v)
}

// What does not fit, and what is not there, is said.
func TestLayoutMistakes(t *testing.T) {
	ctx := soon(t)
	mem, there, _ := pair(t, "127.88.63")
	require.ErrorIs(t, dsync.InitLock(mem, 4090, time.Second), dsync.ErrLayout)
	require.ErrorIs(t, dsync.InitLock(mem, ^uint64(7), time.Second), dsync.ErrLayout)
	require.ErrorIs(t, dsync.InitLock(mem, 4, time.Second), dsync.ErrLayout)
	require.ErrorIs(t, dsync.InitLock(mem, 0, 0), dsync.ErrLayout)
	_, err := dsync.OpenLock(ctx, there, 0)
	require.ErrorIs(t, err, dsync.ErrLayout)
	require.NoError(t, dsync.InitCounter(mem, 0, 0))
	_, err = dsync.OpenLock(ctx, there, 0)
	require.ErrorIs(t, err, dsync.ErrLayout)
	require.ErrorContains(t, err, `dsync: open: lock at offset 0 of region "sync" at peer 127.88.63.1:18515`)
	_, err = dsync.OpenCounter(ctx, there, 4096)
	require.Error(t, err)
	over, cancel := context.WithCancel(ctx)
	cancel()
	require.NoError(t, dsync.InitLock(mem, 64, time.Second))
	_, err = dsync.OpenLock(over, there, 64)
	require.ErrorIs(t, err, context.Canceled)
}
