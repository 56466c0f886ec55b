package rc

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce/wr"
)

// What is still to come is known of a WRITE from its first packet to its last, and of
// a SEND never, whose length nobody has told.
func TestComingOfMessages(t *testing.T) {
	a, b := newPair(t)
	b.postRecv(100, 0, 4096)
	a.post(a.req(1, wr.OpWrite, 0, 3000))
	a.post(a.req(2, wr.OpSend, 0, 3000))
	a.drain()
	require.Zero(t, b.rc.Coming())
	for i, want := range []uint64{1976, 952, 0, 0, 0, 0} {
		a.deliver()
		require.Equal(t, want, b.rc.Coming(), "after packet %d", i)
	}
}

// Of READs, what their answers have left, as far as it has been asked for; behind it a
// WRITE of ours counts nothing.
func TestComingOfAnswers(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpRead, 0, 3000))
	a.post(a.req(2, wr.OpWrite, 0, 9000))
	require.Zero(t, a.rc.Coming(), "not asked for yet")
	a.drain()
	require.EqualValues(t, 3000, a.rc.Coming())
	a.deliverAll()
	for i, want := range []uint64{1976, 952, 0} {
		b.deliver()
		require.Equal(t, want, a.rc.Coming(), "after packet %d", i)
	}
}
