package dsync

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/syncproto"
)

// Writers, of whom some stop for good, and readers of a value of many packets, over
// a network that loses packets: what is read is whole, and never older than before.
func TestValueWithCrashesAndLoss(t *testing.T) {
	const writers, readers, words = 3, 3, 200
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed, 1+writers+readers, bad)
			s := shape{capacity: 8 * words, writers: writers}
			home, err := w.all[0].Alloc(int(ValueSize(s.capacity, s.writers)), everything)
			require.NoError(t, err)
			w.home = home
			require.NoError(t, InitValue(home, 0, s.capacity, s.writers, make([]byte, s.capacity)))
			rng := rand.New(rand.NewPCG(seed, 9))
			stored, loaded := 0, 0
			at := func(i int) place {
				local, err := w.all[i].Alloc(int(s.slot()+wordSize), hixl.LocalWrite)
				require.NoError(t, err)
				return place{kind: valueKind, r: w.remote(i), local: local}
			}
			for n := range uint64(writers) {
				m := syncproto.NewPublish(s.config(), n)
				p := at(1 + int(n))
				u := w.user(1+int(n), p, &m)
				u.rest = func(now hixl.Time) bool {
					require.False(t, m.Fenced() || m.Conflict())
					stored++
					data := make([]byte, s.capacity)
					for i := range words {
						binary.LittleEndian.PutUint64(data[8*i:], uint64(stored))
					}
					fill(p.local.Bytes(), 0, data)
					m.Begin(0, false, 0)
					u.wake = now.Add(time.Duration(rng.IntN(int(2 * time.Millisecond))))
					return true
				}
			}
			for n := range readers {
				m := syncproto.NewFetch(s.config())
				p := at(1 + writers + n)
				last, begun := uint64(0), false
				u := w.user(1+writers+n, p, &m)
				u.rest = func(now hixl.Time) bool {
					if begun {
						loaded++
						require.GreaterOrEqual(t, m.Version(), last)
						last = m.Version()
						slot := p.local.Bytes()
						for i := range words {
							require.Equal(t, slot[slotHead:slotHead+8], slot[slotHead+8*i:slotHead+8*i+8], "a torn value")
						}
					}
					begun = true
					m.Begin()
					u.wake = now.Add(time.Duration(rng.IntN(int(2 * time.Millisecond))))
					return true
				}
			}
			end := w.net.Now().Add(time.Second)
			w.run(2*time.Second, func(now hixl.Time) {
				if i := 1 + rng.IntN(writers-1); now > end && rng.IntN(100) == 0 {
					w.stopped[i] = true // in the middle of whatever it does
				}
			})
			require.Greater(t, stored, 20)
			require.Greater(t, loaded, 20)
		})
	}
}
