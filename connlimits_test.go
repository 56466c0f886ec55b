package hixl_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
)

// Neither side wants READs, as perftest for writes and sends.
func TestNoReads(t *testing.T) {
	f := newFabric(t, 2, good)
	d, a := f.hosts[0].config(), f.hosts[1].config()
	d.MaxReads, a.MaxReads = hixl.None, hixl.None
	none := hixl.ConnectOptions{MaxReads: hixl.None}
	c, s := f.pair(hixl.DialOptions{QPConfig: d, Connect: none}, hixl.AcceptOptions{QPConfig: a, Connect: none})
	for _, q := range []hixl.Attr{c.Query(), s.Query()} {
		require.Zero(t, q.MaxRead)
		require.Zero(t, q.MaxDestRead)
	}
	require.NoError(t, c.PostSend(hixl.SendWR{Op: hixl.OpWrite, SGE: []hixl.SGE{f.hosts[0].mem.SGE(0, 8)}, RemoteAddr: f.hosts[1].mem.Addr(), RKey: f.hosts[1].mem.RKey()}))
	var wc [1]hixl.Completion
	f.until(time.Minute, func() bool { n, _ := f.hosts[0].cq.Poll(wc[:]); return n == 1 })
	require.NoError(t, wc[0].Err())
	require.Error(t, c.PostSend(hixl.SendWR{Op: hixl.OpRead, SGE: []hixl.SGE{f.hosts[0].mem.SGE(0, 8)}, RemoteAddr: f.hosts[1].mem.Addr(), RKey: f.hosts[1].mem.RKey()}))
}

// Receives of several connections come from one queue, which the peer is told.
func TestSharedReceives(t *testing.T) {
	f := newFabric(t, 2, good)
	srq, err := f.hosts[1].nic.CreateSRQ(f.hosts[1].pd, hixl.SRQConfig{})
	require.NoError(t, err)
	require.NoError(t, srq.Post(hixl.RecvWR{ID: 1}, hixl.RecvWR{ID: 2}))
	a := f.hosts[1].config()
	a.SRQ = srq
	for i := range 2 {
		c, s := f.pair(hixl.DialOptions{}, hixl.AcceptOptions{QPConfig: a})
		require.NoError(t, c.PostSend(hixl.SendWR{Op: hixl.OpSendImm, Imm: uint32(i)}))
		var wc [1]hixl.Completion
		f.until(time.Minute, func() bool { n, _ := f.hosts[1].cq.Poll(wc[:]); return n == 1 })
		require.Equal(t, s.QPN(), wc[0].QPN)
		require.EqualValues(t, i, wc[0].Imm)
	}
	l := f.hosts[1].listen(t, ":9", hixl.AcceptOptions{})
	a.PD = f.hosts[1].pd
	c, err := f.hosts[1].nic.StartDial(l.Addr(), hixl.DialOptions{QPConfig: a})
	require.NoError(t, err)
	require.True(t, f.request(l).Offer().SRQ)
	_, err = f.hosts[1].nic.StartDial(l.Addr(), hixl.DialOptions{QPConfig: a, Receives: []hixl.RecvWR{{}}})
	require.ErrorContains(t, err, "shared receive queue")
	require.NoError(t, c.Close())
}

// A full completion queue breaks the connection, and says so.
func TestOverrunEndsConnection(t *testing.T) {
	f := newFabric(t, 2, good)
	tiny, err := f.hosts[0].nic.CreateCQ(1)
	require.NoError(t, err)
	d := f.hosts[0].config()
	d.SendCQ = tiny
	c, s := f.pair(hixl.DialOptions{QPConfig: d}, hixl.AcceptOptions{})
	wr := hixl.SendWR{Op: hixl.OpWrite, RemoteAddr: f.hosts[1].mem.Addr(), RKey: f.hosts[1].mem.RKey()}
	require.NoError(t, c.PostSend(wr, wr, wr))
	require.ErrorContains(t, f.ends(c), "a completion queue was full")
	require.ErrorIs(t, f.ends(s), hixl.ErrDisconnected)
}
