package dsync_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/dsync"
)

// Parties here and at the home, round after round: nobody is ahead of anybody.
func TestBarrier(t *testing.T) {
	ctx := soon(t)
	mem, there, self := pair(t, "127.88.70")
	const parties, rounds = 3, 30
	require.NoError(t, dsync.InitBarrier(mem, 8, parties, 0))
	var all [parties]atomic.Int64 // rounds that each has come to
	var group sync.WaitGroup
	for n, place := range []*hixl.RemoteRegion{there, self, there} {
		b, err := dsync.OpenBarrier(ctx, place, 8, uint64(n))
		require.NoError(t, err)
		group.Go(func() {
			for i := range int64(rounds) {
				all[n].Store(i + 1)
				round, err := b.Wait(ctx)
				if err != nil || round != uint64(i+1) {
					t.Errorf("round %d: %d, %v", i+1, round, err)
					return
				}
				for other := range all {
					if v := all[other].Load(); v < i+1 {
						t.Errorf("party %d has passed round %d, party %d is at %d", n, i+1, other, v)
					}
				}
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestBarrierMistakes(t *testing.T) {
	ctx := soon(t)
	mem, there, _ := pair(t, "127.88.71")
	require.ErrorIs(t, dsync.InitBarrier(mem, 0, 0, 0), dsync.ErrLayout)
	require.ErrorIs(t, dsync.InitBarrier(mem, 0, 1<<62, 0), dsync.ErrLayout)
	require.ErrorIs(t, dsync.InitBarrier(mem, 0, 600, 0), dsync.ErrLayout)
	require.ErrorIs(t, dsync.InitBarrier(mem, 0, 2, -1), dsync.ErrLayout)
	_, err := dsync.OpenBarrier(ctx, there, 0, 0)
	require.ErrorIs(t, err, dsync.ErrLayout)
	require.NoError(t, dsync.InitBarrier(mem, 0, 2, 0))
	_, err = dsync.OpenBarrier(ctx, there, 0, 2)
	require.ErrorIs(t, err, dsync.ErrLayout)
	mem.Bytes()[8+5] = 1 // many parties
	_, err = dsync.OpenBarrier(ctx, there, 0, 0)
	require.ErrorIs(t, err, dsync.ErrLayout)
	require.NoError(t, dsync.InitBarrier(mem, 0, 2, 0))
	b, err := dsync.OpenBarrier(ctx, there, 0, 1)
	require.NoError(t, err)
	mem.Bytes()[24+7] = 1 // a round that nobody has come to
	_, err = b.Wait(ctx)
	require.ErrorIs(t, err, dsync.ErrLayout)
	require.NoError(t, b.Close())
}

// Who is missed is named, and who gives up says so to all; a wait that ended early
// goes on.
func TestBarrierBroken(t *testing.T) {
	ctx := soon(t)
	mem, there, self := pair(t, "127.88.72")
	open := func(off, n uint64, at *hixl.RemoteRegion) *dsync.Barrier {
		b, err := dsync.OpenBarrier(ctx, at, off, n)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, b.Close()) })
		return b
	}
	broken := func(err error, round uint64) []uint64 {
		e := (*dsync.BrokenError)(nil)
		require.ErrorAs(t, err, &e)
		require.Equal(t, round, e.Round)
		return e.Missing
	}
	require.NoError(t, dsync.InitBarrier(mem, 0, 3, 20*time.Millisecond))
	a, b := open(0, 0, there), open(0, 2, self)
	_, err := a.Wait(ctx)
	require.Contains(t, broken(err, 1), uint64(1))
	_, err = b.Wait(ctx)
	broken(err, 1)
	_, err = b.Wait(ctx)
	broken(err, 1)

	require.NoError(t, dsync.InitBarrier(mem, 256, 2, 0))
	a, b = open(256, 0, there), open(256, 1, self)
	brief, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = a.Wait(brief)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	other := make(chan error, 1)
	go func() { // on a fast machine a has arrived
		round, err := b.Wait(ctx)
		assert.EqualValues(t, 1, round)
		other <- err
	}()
	round, err := a.Wait(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, round)
	require.NoError(t, <-other)
	require.NoError(t, b.Break(ctx, 1), "too late: all have passed it")
	require.ErrorIs(t, b.Break(ctx, 3), dsync.ErrConflict, "too early")
	require.ErrorIs(t, b.Break(ctx, 0), dsync.ErrConflict)
	go func() { // the late one has broken nothing
		_, err := b.Wait(ctx)
		other <- err
	}()
	round, err = a.Wait(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 2, round)
	require.NoError(t, <-other)
	require.NoError(t, b.Break(ctx, 3))
	require.NoError(t, b.Break(ctx, 3))
	_, err = a.Wait(ctx)
	broken(err, 3)
}
