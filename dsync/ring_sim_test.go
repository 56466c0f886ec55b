package dsync

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/syncproto"
)

// A producer and a consumer, each replaced a few times after it stops for good in the
// middle of whatever it does, over a network that loses packets: the consumers get
// all that is put in, whole, in order, from where the one before had given back.
func TestRingWithCrashesAndLoss(t *testing.T) {
	const life, lives = 200 * time.Millisecond, 3
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed, 1+2*lives, bad)
			s := ringShape{slots: 7, record: 5000}
			home, err := w.all[0].Alloc(int(RingSize(s.slots, s.record)), everything)
			require.NoError(t, err)
			w.home = home
			require.NoError(t, InitRing(home, 0, s.slots, s.record))
			rng := rand.New(rand.NewPCG(seed, 11))
			at := func(i int) place {
				local, err := w.all[i].Alloc(int(s.slot()), hixl.LocalWrite)
				require.NoError(t, err)
				return place{kind: ringKind, r: w.remote(i), local: local}
			}
			producer := func(i int) {
				m, p := syncproto.NewProduce(s.config()), at(i)
				m.Open()
				w.user(i, p, &m).rest = func(hixl.Time) bool {
					require.False(t, m.Strange() || m.Fenced())
					m.Begin()
					n := binary.LittleEndian.AppendUint64(nil, m.Seq())
					copy(p.local.Bytes(), bytes.Repeat(n, int(s.slot()/8)))
					return true
				}
			}
			got, repeated := uint64(0), 0
			consumer := func(i int) {
				m, p := syncproto.NewConsume(s.config()), at(i)
				m.Open()
				opened := false
				w.user(i, p, &m).rest = func(now hixl.Time) bool {
					require.False(t, m.Strange() || m.Fenced())
					if opened {
						seq := m.Seq()
						require.LessOrEqual(t, seq, got, "a record is missing")
						if seq < got {
							repeated++
						}
						require.Less(t, got-seq, s.slots)
						got = seq + 1
						want := bytes.Repeat(binary.LittleEndian.AppendUint64(nil, seq), int(s.slot()/8))
						require.True(t, bytes.Equal(want, p.local.Bytes()[:len(want)]), "record %d is torn", seq)
					}
					opened = true
					m.Begin()
					return true
				}
			}
			producer(1)
			consumer(2)
			nextP, nextC := 1, 2
			dieP, dieC := w.net.Now().Add(life), w.net.Now().Add(life+50*time.Millisecond)
			w.run(2*lives*life, func(now hixl.Time) {
				later := now.Add(life/2 + time.Duration(rng.Int64N(int64(life))))
				switch { // the next one begins when nothing of the one before is on its way
				case now > dieP && !w.stopped[nextP]:
					w.stopped[nextP], dieP = true, now.Add(20*time.Millisecond)
				case now > dieP && nextP+2 < 2*lives:
					nextP, dieP = nextP+2, later
					producer(nextP)
				case now > dieC && !w.stopped[nextC]:
					w.stopped[nextC], dieC = true, now
				case now > dieC && nextC+2 <= 2*lives:
					nextC, dieC = nextC+2, later
					consumer(nextC)
				}
			})
			require.Greater(t, got, uint64(30))
			t.Logf("%d records, %d again", got, repeated)
		})
	}
}
