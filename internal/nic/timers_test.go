package nic

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
)

// Arming is lazy, so an entry may fire early, but never late, and never twice.
func TestTimers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var heap timers
	qs := make([]*Queue, 50)
	wanted := map[*Queue]mono.Time{} // the newest deadline asked for
	bound := map[*Queue]mono.Time{}  // by when it must fire
	for i := range qs {
		qs[i] = &Queue{}
	}
	now := mono.Time(1)
	for range 20000 {
		q := qs[rng.IntN(len(qs))]
		switch rng.IntN(10) {
		case 0:
			heap.drop(q)
			delete(wanted, q)
			delete(bound, q)
		case 1, 2:
			now += mono.Time(rng.IntN(50))
			for _, d := range heap.due(now, nil) {
				require.Contains(t, bound, d, "fired without being armed")
				require.LessOrEqual(t, bound[d], now)
				delete(bound, d)
				if wanted[d] > now { // too early a look: armed anew
					heap.arm(d, wanted[d])
					bound[d] = wanted[d]
				}
			}
			for q, at := range bound {
				require.Greater(t, at, now, "%p is late", q)
			}
		default:
			at := now + mono.Time(1+rng.IntN(200))
			before := heap.next()
			earlier := heap.arm(q, at)
			require.Equal(t, before.IsZero() || at < before, earlier && heap.next() == at && at != before)
			wanted[q] = at
			if b, ok := bound[q]; !ok || at < b {
				bound[q] = at
			}
		}
		if next := heap.next(); len(bound) > 0 {
			for _, at := range bound {
				require.LessOrEqual(t, next, at)
			}
		} else {
			require.True(t, next.IsZero())
		}
	}
	require.False(t, heap.arm(qs[0], 0), "0 is never")
}
