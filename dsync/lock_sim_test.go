package dsync

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/syncproto"
	"github.com/gohixl/hixl/transport/sim"
)

// Users of one lock, the home among them, over a network that loses packets. Some
// stop for longer than a lease while they hold it, some for good. Never do two hold
// it, tokens increase, and it never stays with the dead.
func TestLockWithCrashesAndLoss(t *testing.T) {
	const users, lease = 5, 100 * time.Millisecond
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			link := bad
			if seed == 0 {
				link = sim.Link{Delay: 10 * time.Microsecond}
			}
			w := newWorld(t, seed, users, link)
			require.NoError(t, InitLock(w.home, 128, lease))
			rng := rand.New(rand.NewPCG(seed, 7))
			machines := make([]syncproto.Lock, users)
			resume := make([]hixl.Time, users)
			held := make([]bool, users) // last seen in the critical section
			took := make([]int, users)
			last, stops := uint64(0), 0
			for i := range users {
				l := Lock{place: place{kind: lockKind, r: w.remote(i), off: 128}, lease: lease}
				machines[i] = syncproto.NewLock(l.config())
				m := &machines[i]
				u := w.user(i, l.place, m)
				u.rest = func(now hixl.Time) bool {
					switch {
					case m.Lost():
						m.Rest()
						held[i] = false
					case !m.Held(now) && !held[i]:
						m.Acquire(false)
					case rng.IntN(3) == 0:
						m.Release()
						held[i] = false
						u.wake = now.Add(time.Duration(rng.IntN(int(10 * time.Millisecond))))
					default:
						m.Renew(now)
						u.wake = now.Add(time.Duration(rng.IntN(int(lease / 3))))
					}
					return true
				}
				u.after = func(now hixl.Time) {
					if m.Held(now) && !held[i] {
						held[i] = true
						took[i]++
						require.Greater(t, m.Token(), last)
						last = m.Token()
					}
				}
			}
			w.run(4*time.Second, func(now hixl.Time) {
				holders := 0
				for i := range users {
					if machines[i].Held(now) && held[i] {
						holders++
					}
					if w.stopped[i] && resume[i] != 0 && now >= resume[i] {
						w.stopped[i], resume[i] = false, 0
					}
				}
				require.LessOrEqual(t, holders, 1)
				if i := 1 + rng.IntN(users-1); held[i] && !w.stopped[i] && stops < 12 && rng.IntN(400) == 0 {
					stops++
					w.stopped[i] = true
					if stops%4 != 0 || i < 3 { // the others never come back
						resume[i] = now.Add(lease + time.Duration(rng.Int64N(int64(lease))))
					}
				}
			})
			require.NotZero(t, stops)
			all := 0
			for i := range users {
				if !w.stopped[i] {
					require.NotZero(t, took[i], "user %d", i)
				}
				all += took[i]
			}
			require.Greater(t, all, 20)
		})
	}
}
