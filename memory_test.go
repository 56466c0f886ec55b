package hixl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
)

func TestAllocatedMemoryEnds(t *testing.T) {
	nic, err := hixl.OpenNIC(at("127.89.6.1"))
	require.NoError(t, err)
	pd := nic.AllocPD()
	first, err := pd.Alloc(4096, hixl.LocalWrite)
	require.NoError(t, err)
	second, err := pd.Alloc(4096, hixl.LocalWrite)
	require.NoError(t, err)
	require.Len(t, first.Bytes(), 4096)

	require.NoError(t, first.Deregister(t.Context()))
	require.Nil(t, first.Bytes())
	require.Len(t, second.Bytes(), 4096)

	require.NoError(t, nic.Close())
	require.Nil(t, second.Bytes())
	require.NoError(t, second.Deregister(t.Context()), "once more")
	_, err = pd.Alloc(4096, hixl.LocalWrite)
	require.ErrorIs(t, err, hixl.ErrClosed)
	require.NoError(t, pd.Dealloc(), "what was refused has left nothing")
}

func TestPostOnClosedQueuePair(t *testing.T) {
	h := newHost(t, at("127.89.6.2"))
	q, err := h.nic.CreateQP(h.config())
	require.NoError(t, err)
	require.NoError(t, q.Close())
	err = q.PostSend(hixl.SendWR{})
	require.ErrorIs(t, err, hixl.ErrState)
	require.ErrorContains(t, err, "post send in state RESET is not possible; connect it first; one that was closed stays so, make another")
}
