package qp

import (
	"errors"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
)

// §3.18, once more and by hand: R is required, o is optional.
var spec = map[Type]map[[2]State][2]AttrMask{
	RC: {
		{Reset, Init}: {0x10 | 0x20 | 0x8, 0},
		{Init, Init}:  {0, 0x10 | 0x20 | 0x8},
		{Init, RTR}:   {0x80 | 0x100 | 0x100000 | 0x1000 | 0x20000 | 0x8000, 0x4000 | 0x8 | 0x10},
		{RTR, RTS}:    {0x200 | 0x400 | 0x800 | 0x10000 | 0x2000, 0x2 | 0x4000 | 0x8 | 0x8000 | 0x40000},
		{RTS, RTS}:    {0, 0x2 | 0x8 | 0x4000 | 0x40000 | 0x8000},
		{RTS, SQD}:    {0, 0x4},
		{SQD, RTS}:    {0, 0x2 | 0x8 | 0x4000 | 0x40000 | 0x8000},
		{SQD, SQD}:    {0, 0x20 | 0x80 | 0x200 | 0x400 | 0x800 | 0x2000 | 0x20000 | 0x4000 | 0x8 | 0x10 | 0x8000 | 0x40000},
	},
	UC: {
		{Reset, Init}: {0x10 | 0x20 | 0x8, 0},
		{Init, Init}:  {0, 0x10 | 0x20 | 0x8},
		{Init, RTR}:   {0x80 | 0x100 | 0x100000 | 0x1000, 0x4000 | 0x8 | 0x10},
		{RTR, RTS}:    {0x10000, 0x2 | 0x4000 | 0x8 | 0x40000},
		{RTS, RTS}:    {0, 0x2 | 0x8 | 0x4000 | 0x40000},
		{RTS, SQD}:    {0, 0x4},
		{SQD, RTS}:    {0, 0x2 | 0x8 | 0x4000 | 0x40000},
		{SQD, SQD}:    {0, 0x80 | 0x4000 | 0x8 | 0x10 | 0x40000},
		{SQE, RTS}:    {0, 0x2 | 0x8},
	},
	UD: {
		{Reset, Init}: {0x10 | 0x20 | 0x40, 0},
		{Init, Init}:  {0, 0x10 | 0x20 | 0x40},
		{Init, RTR}:   {0, 0x10 | 0x40},
		{RTR, RTS}:    {0x10000, 0x2 | 0x40},
		{RTS, RTS}:    {0, 0x2 | 0x40},
		{RTS, SQD}:    {0, 0x4},
		{SQD, RTS}:    {0, 0x2 | 0x40},
		{SQD, SQD}:    {0, 0x10 | 0x40},
		{SQE, RTS}:    {0, 0x2 | 0x40},
	},
	GSI: {
		{Reset, Init}: {0x10 | 0x40, 0},
		{Init, Init}:  {0, 0x10 | 0x40},
		{Init, RTR}:   {0, 0x10 | 0x40},
		{RTR, RTS}:    {0x10000, 0x2 | 0x40},
		{RTS, RTS}:    {0, 0x2 | 0x40},
		{RTS, SQD}:    {0, 0x4},
		{SQD, RTS}:    {0, 0x2 | 0x40},
		{SQD, SQD}:    {0, 0x10 | 0x40},
		{SQE, RTS}:    {0, 0x2 | 0x40},
	},
}

// Every pair of states of every type: legal or not, and each attribute required,
// optional or refused.
func TestTransitions(t *testing.T) {
	for typ := range Type(numTypes) {
		for from := range State(numStates) {
			for to := range State(numStates) {
				row, legal := spec[typ][[2]State{from, to}]
				if to == Reset || to == Err && from != Reset {
					row, legal = [2]AttrMask{}, true
				}
				required, optional := row[0], row[1]
				err := CheckTransition(typ, from, to, required|MaskState)
				if !legal {
					var state *StateError
					require.True(t, errors.As(err, &state), "%v %v to %v: %v", typ, from, to, err)
					require.ErrorIs(t, err, ErrState)
					require.Equal(t, [2]State{from, to}, [2]State{state.State, state.To})
					require.NotContains(t, state.Allowed, to)
					require.Contains(t, state.Allowed, Reset)
					continue
				}
				require.NoError(t, err, "%v %v to %v", typ, from, to)
				require.NoError(t, CheckTransition(typ, from, to, required|optional))
				checkEachBit(t, typ, from, to, required, optional)
			}
		}
	}
}

func checkEachBit(t *testing.T, typ Type, from, to State, required, optional AttrMask) {
	t.Helper()
	for i := range len(maskNames) {
		bit := AttrMask(1) << i
		var attr *AttrError
		switch {
		case bit == MaskState:
		case required&bit != 0:
			err := CheckTransition(typ, from, to, required&^bit)
			require.True(t, errors.As(err, &attr), "%v %v to %v without %v", typ, from, to, bit)
			require.Equal(t, bit, attr.Missing)
			require.ErrorContains(t, err, bit.String())
		case optional&bit == 0:
			err := CheckTransition(typ, from, to, required|bit)
			require.True(t, errors.As(err, &attr), "%v %v to %v with %v", typ, from, to, bit)
			require.Equal(t, bit, attr.NotAllowed)
			require.ErrorContains(t, err, bit.String())
		}
	}
}

func TestTransitionOfNonsense(t *testing.T) {
	require.ErrorIs(t, CheckTransition(99, Reset, Init, 0), ErrState)
	require.ErrorIs(t, CheckTransition(RC, 99, Init, 0), ErrState)
	require.ErrorIs(t, CheckTransition(RC, Init, 99, 0), ErrState)
}

func TestMaskNames(t *testing.T) {
	require.Equal(t, "none", AttrMask(0).String())
	require.Equal(t, "STATE|AV|DEST_QPN", (MaskState | MaskAV | MaskDestQPN).String())
	require.Equal(t, "CAP|0x80000000", (MaskCap | 1<<31).String())
	require.Len(t, maskNames, bits.Len32(uint32(MaskDestQPN)))
}
