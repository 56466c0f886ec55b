package nic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

func TestQPNTable(t *testing.T) {
	table, err := newQPNTable(100)
	require.NoError(t, err)
	take := func() *Queue {
		n, err := table.reserve()
		require.NoError(t, err)
		require.GreaterOrEqual(t, n, roce.QPN(firstQPN))
		require.Less(t, n, roce.QPNMulticast)
		require.Nil(t, table.get(n), "reserved, not there yet")
		q := &Queue{qpn: n}
		table.put(q)
		require.Same(t, q, table.get(n))
		return q
	}
	var live []*Queue
	for range 100 {
		live = append(live, take())
	}
	_, err = table.reserve()
	require.ErrorIs(t, err, ErrTooManyQPs)
	require.Equal(t, 100, table.count())

	// A number that was given back is not used again for a long time, and finds
	// nobody meanwhile.
	old := live[0].qpn
	require.True(t, table.remove(live[0]))
	require.False(t, table.remove(live[0]))
	seen := map[roce.QPN]bool{}
	for range 10000 {
		q := take()
		require.NotEqual(t, old, q.qpn)
		require.Nil(t, table.get(old))
		seen[q.qpn] = true
		require.True(t, table.remove(q))
	}
	require.Len(t, seen, 10000, "no number came twice")

	n, err := table.reserve()
	require.NoError(t, err)
	table.cancel(n)
	require.Equal(t, 99, table.count())
}

// The low bits, by which a receive shard will be chosen, are spread evenly.
func TestQPNsSpread(t *testing.T) {
	table, err := newQPNTable(1 << 10)
	require.NoError(t, err)
	var shards [8]int
	for range 1 << 10 {
		n, err := table.reserve()
		require.NoError(t, err)
		table.put(&Queue{qpn: n})
		shards[n%8]++
	}
	for _, n := range shards {
		require.Equal(t, 128, n)
	}
}

// A held number is passed over, as often as it is held.
func TestHeldNumbers(t *testing.T) {
	table, err := newQPNTable(64)
	require.NoError(t, err)
	n := &NIC{qps: table}
	at, gens := table.at, append([]uint32(nil), table.gens...)
	first := func() roce.QPN { // what comes next, over and over again
		table.at = at
		copy(table.gens, gens)
		q, err := table.reserve()
		require.NoError(t, err)
		table.cancel(q)
		return q
	}
	usual := first()
	require.Equal(t, usual, first())
	n.HoldQPN(usual)
	n.HoldQPN(usual)
	n.HoldQPN(usual + 1)
	total, held := n.HeldQPNs(usual)
	require.True(t, held)
	require.Equal(t, 2, total)
	for range 2 {
		require.NotEqual(t, usual, first())
		n.FreeQPN(usual)
	}
	require.Equal(t, usual, first())
	_, held = n.HeldQPNs(usual)
	require.False(t, held)
}
