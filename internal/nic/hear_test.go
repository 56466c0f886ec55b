package nic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/transport"
)

// A timer ends no nap of a receiver: it looks for an answer after the end of one that
// lasts too long.
func TestHearLeavesNaps(t *testing.T) {
	r, now := gathering()
	reader := &readNothing{}
	r.reader, r.slots, r.gather.coming = reader, make([]transport.Rx, 1), gatherSure
	require.True(t, r.naps())
	r.hear(r.nic.clock)
	require.Zero(t, reader.looks)
	require.True(t, r.napping())
	*now = now.Add(gatherFor)
	r.hear(r.nic.clock)
	require.Equal(t, 1, reader.looks)
}
