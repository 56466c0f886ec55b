package mr

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gohixl/hixl/device/host"
)

func TestSlotFIFO(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f slotFIFO
		var model []uint32
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				x := rapid.Uint32().Draw(t, "x")
				f.push(x)
				model = append(model, x)
			},
			"pop": func(t *rapid.T) {
				x, ok := f.pop()
				require.Equal(t, len(model) > 0, ok)
				if ok {
					require.Equal(t, model[0], x)
					model = model[1:]
				}
			},
			"": func(t *rapid.T) { require.EqualValues(t, len(model), f.len()) },
		})
	})
}

func TestSlotsAreReusedLate(t *testing.T) {
	var s slots
	for k := range uint32(3 * quarantine) {
		i, ok := s.take()
		require.True(t, ok)
		if want := k % quarantine; i != want {
			t.Fatalf("registration %d got slot %d, want %d, the one that is longest free", k, i, want)
		}
		s.free.push(i)
	}
	require.EqualValues(t, quarantine, s.used, "it stops growing once enough wait")
}

func TestSlotsRunOut(t *testing.T) {
	var s slots
	for range maxSlots {
		_, ok := s.take()
		require.True(t, ok)
	}
	_, ok := s.take()
	require.False(t, ok)
	s.free.push(17)
	i, ok := s.take()
	require.True(t, ok)
	require.EqualValues(t, 17, i)
}

// Key 0 is reserved invalid (§6): the one number that seals to it is skipped,
// for either kind.
func TestKeyZeroIsNeverGivenOut(t *testing.T) {
	for _, kind := range []uint32{0, kindR} {
		// Look for a secret whose number behind key 0 has the kind and a slot that
		// is soon taken.
		for seed := byte(0); ; seed++ {
			p := newTestPermutation(t, seed)
			if p.open(0)&kindR == kind {
				testSkipsZero(t, seed, p.open(0))
				break
			}
		}
	}
}

func testSkipsZero(t *testing.T, seed byte, zero uint32) {
	table, err := NewTable(Config{Rand: seeded(seed)})
	require.NoError(t, err)
	i, gen := zero>>genBits&(maxSlots-1), zero&genMask
	table.slots.free.push(i)
	table.slots.used = maxSlots
	table.slots.chunks[i>>chunkBits].Store(new([chunkSlots]slot))
	table.slots.at(i).gen = (gen - 1) & genMask // the next is the bad one

	r, err := table.AllocPD().Register(host.New(make([]byte, 8)), Options{})
	require.NoError(t, err)
	require.NotZero(t, r.LKey())
	require.NotZero(t, r.RKey())
	require.Equal(t, (gen+1)&genMask, table.slots.at(i).gen)
}
