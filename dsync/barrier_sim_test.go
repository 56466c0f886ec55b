package dsync

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/syncproto"
)

// Parties over a network that loses packets. Some stop for a while, in the end one
// does for good: nobody passes before all have arrived, and none that lives waits for
// the dead one.
func TestBarrierWithCrashesAndLoss(t *testing.T) {
	const parties, patience = 5, time.Second
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed, parties, bad)
			require.NoError(t, InitBarrier(w.home, 64, parties, patience))
			rng := rand.New(rand.NewPCG(seed, 13))
			machines := make([]syncproto.Barrier, parties)
			began := make([]uint64, parties) // rounds that each has come to
			for i := range parties {
				local, err := w.all[i].Alloc((1+parties)*wordSize, hixl.LocalWrite)
				require.NoError(t, err)
				machines[i] = syncproto.NewBarrier(barrierConfig(parties, uint64(i), patience))
				m := &machines[i]
				u := w.user(i, place{kind: barrierKind, r: w.remote(i), off: 64, local: local}, m)
				u.rest = func(now hixl.Time) bool {
					require.False(t, m.Strange())
					if m.Broken() {
						return false
					}
					for other, n := range began {
						require.GreaterOrEqual(t, n, m.Passed(), "party %d has not come to the round that party %d has passed", other, i)
					}
					began[i]++
					m.Begin()
					u.wake = now.Add(time.Duration(rng.IntN(int(5 * time.Millisecond))))
					return true
				}
			}
			resume, dead := hixl.Time(0), 0
			end := w.net.Now().Add(time.Second)
			w.run(3*time.Second, func(now hixl.Time) {
				switch i := 1 + rng.IntN(parties-1); {
				case dead != 0:
				case resume != 0:
					if now >= resume {
						clear(w.stopped)
						resume = 0
					}
				case now > end:
					dead = i
					w.stopped[i] = true
				case rng.IntN(2000) == 0:
					w.stopped[i], resume = true, now.Add(patience/10)
				}
			})
			require.NotZero(t, dead)
			rounds := machines[0].Passed()
			require.Greater(t, rounds, uint64(10))
			for i := range machines {
				if i != dead {
					require.True(t, machines[i].Broken(), "party %d waits for one that is dead", i)
					require.Equal(t, rounds, machines[i].Passed())
				}
			}
		})
	}
}
