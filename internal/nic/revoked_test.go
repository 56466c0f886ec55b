package nic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/wr"
)

// A region that is gone between the acceptance of a READ and its answer, here by
// another connection's SEND with invalidate in the same batch: the peer is told at
// once, not at its next retransmission.
func TestRevokedBeforeReadIsAnswered(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 3})
	pd := f.NICs[2].AllocPD()
	reader, b := f.Pair(0, 2, nictest.PairConfig{PDs: [2]*mr.PD{f.NICs[0].AllocPD(), pd}})
	revoker, c := f.Pair(1, 2, nictest.PairConfig{PDs: [2]*mr.PD{f.NICs[1].AllocPD(), pd}})
	local, remote := reader.Region(64), b.Region(64)
	c.Receive(qp.RecvWR{ID: 1})
	start := f.Now()
	reader.Post(qp.SendWR{Op: wr.OpRead, SGE: []mr.SGE{local.SGE(0, 64)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()})
	revoker.Post(qp.SendWR{Op: wr.OpSendInv, InvKey: remote.RKey()})
	f.Net.Advance(start)
	for range 4 {
		f.Settle()
		f.Net.Advance(start)
	}
	got := reader.Take(reader.Send)
	require.Len(t, got, 1)
	require.ErrorIs(t, got[0].Err(), cq.ErrRemoteAccess)
	require.Equal(t, uint64(1), success(t, f, c, c.Recv).WRID)
}
