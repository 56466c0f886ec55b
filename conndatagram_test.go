package hixl_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
	"github.com/gohixl/hixl/transport/sim"
)

// datagrams makes a queue pair for datagrams, ready.
func (h *host) datagrams(t *testing.T) *hixl.QP {
	t.Helper()
	q, err := h.nic.CreateQP(hixl.QPConfig{PD: h.pd, Type: hixl.UD, QKey: hixl.DefaultQKey, SendCQ: h.cq, RecvCQ: h.cq})
	require.NoError(t, err)
	require.NoError(t, q.Activate())
	return q
}

func (f *fabric) resolve(to *hixl.UDListener, o hixl.ResolveOptions) *hixl.Resolving {
	f.t.Helper()
	r, err := f.hosts[0].nic.StartResolveUD(to.Addr(), o)
	require.NoError(f.t, err)
	return r
}

// A datagram queue pair is found and sent to, over a network that loses much.
func TestResolveUD(t *testing.T) {
	for seed := range uint64(10) {
		f := newFabric(t, 2, sim.Config{Seed: seed, Link: sim.Link{Delay: time.Millisecond, Loss: 0.3, Duplicate: 0.3}})
		a, b := f.hosts[0].datagrams(t), f.hosts[1].datagrams(t)
		l, err := f.hosts[1].nic.ListenUD(t.Context(), ":7174", hixl.UDConfig{QP: b, PrivateData: []byte("here")})
		require.NoError(t, err)
		r := f.resolve(l, hixl.ResolveOptions{PrivateData: []byte("where")})
		f.until(2*time.Minute, func() bool { return closed(r.Done()) })
		got, err := r.Result()
		require.NoError(t, err)
		require.Equal(t, hixl.Destination{Addr: simAddr(1), QPN: b.QPN(), QKey: hixl.DefaultQKey}, got.To)
		require.Equal(t, "here", string(got.PrivateData[:4]))
		require.Len(t, got.PrivateData, hixl.MaxAnswerData)
		require.Equal(t, l.Addr(), got.RemoteAddr)

		f.net.SetDefaultLink(good.Link)
		require.NoError(t, b.PostRecv(hixl.RecvWR{SGE: []hixl.SGE{f.hosts[1].mem.SGE(0, 100)}}))
		require.NoError(t, a.PostSend(hixl.SendWR{Op: hixl.OpSend, Inline: []byte("a datagram"), To: got.To}))
		var wc [1]hixl.Completion
		f.until(time.Minute, func() bool { n, _ := f.hosts[1].cq.Poll(wc[:]); return n == 1 })
		require.Equal(t, "a datagram", string(f.hosts[1].mem.Bytes()[hixl.GRHLen:50]))
		require.Equal(t, a.QPN(), wc[0].SrcQP)
		require.NoError(t, l.Close())
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		f.rest(5 * time.Minute)
		f.empty()
	}
}

// Questions that the application answers, refuses, or leaves until it closes.
func TestUDRequests(t *testing.T) {
	f := newFabric(t, 2, good)
	b := f.hosts[1].datagrams(t)
	l, err := f.hosts[1].nic.ListenUD(t.Context(), ":7174", hixl.UDConfig{Backlog: 3})
	require.NoError(t, err)
	_, err = f.hosts[1].nic.Listen(t.Context(), ":7174", hixl.ListenConfig{})
	require.NoError(t, err, "connections have ports of their own")
	var qs []*hixl.Resolving
	for range 4 {
		qs = append(qs, f.resolve(l, hixl.ResolveOptions{PrivateData: []byte("where"), LocalPort: 60000}))
	}
	var rs []*hixl.UDRequest
	f.until(time.Minute, func() bool {
		if r, err := l.AcceptRequest(over()); err == nil {
			rs = append(rs, r)
		}
		return len(rs) == 2
	})
	require.Equal(t, "where", string(rs[0].PrivateData()[:5]))
	require.Equal(t, "10.93.0.0:60000", rs[0].RemoteAddr().String())
	require.Equal(t, l.Addr(), rs[0].LocalAddr())
	require.ErrorContains(t, rs[0].Accept(nil, nil), "missing")
	rcq, err := f.hosts[1].nic.CreateQP(f.hosts[1].config())
	require.NoError(t, err)
	require.ErrorContains(t, rs[0].Accept(rcq, nil), "allowed: UD")
	require.NoError(t, rcq.Close())
	require.NoError(t, rs[0].Accept(b, []byte("here")))
	require.Error(t, rs[0].Accept(b, nil), "once")
	require.NoError(t, rs[1].Reject([]byte("why")))
	require.NoError(t, l.Close())
	statuses := make(map[cm.SIDRStatus]int)
	for _, q := range qs {
		f.until(time.Minute, func() bool { return closed(q.Done()) })
		if _, err := q.Result(); err == nil {
			statuses[cm.SIDROK]++
		} else {
			var declined *hixl.DeclinedError
			require.ErrorAs(t, err, &declined)
			require.ErrorIs(t, err, hixl.ErrRejected)
			statuses[declined.Status]++
		}
	}
	require.Equal(t, map[cm.SIDRStatus]int{cm.SIDROK: 1, cm.SIDRRejected: 2, cm.SIDRNoQP: 1}, statuses)
	_, err = l.AcceptRequest(over())
	require.ErrorIs(t, err, net.ErrClosed)

	q := f.resolve(l, hixl.ResolveOptions{})
	f.until(time.Minute, func() bool { return closed(q.Done()) })
	_, err = q.Result()
	require.ErrorContains(t, err, "hixl: resolve 10.93.0.1:7174: declined: ")
	require.ErrorContains(t, err, "start the server")
	q = f.resolve(l, hixl.ResolveOptions{})
	q.Cancel()
	_, err = q.Result()
	require.Error(t, err)
	f.net.Cut(simAddr(0), simAddr(1))
	q = f.resolve(l, hixl.ResolveOptions{})
	f.until(5*time.Minute, func() bool { return closed(q.Done()) })
	_, err = q.Result()
	require.ErrorIs(t, err, hixl.ErrUnreachable)
	require.NoError(t, b.Close())
	f.rest(5 * time.Minute)
	f.empty()
	noKey, err := f.hosts[1].nic.CreateQP(hixl.QPConfig{PD: f.hosts[1].pd, Type: hixl.UD, SendCQ: f.hosts[1].cq, RecvCQ: f.hosts[1].cq})
	require.NoError(t, err)
	_, err = f.hosts[1].nic.ListenUD(t.Context(), ":1", hixl.UDConfig{QP: noKey})
	require.ErrorContains(t, err, "Q_Key")
}

// Unreliable connections come about the same way.
func TestDialUC(t *testing.T) {
	f := newFabric(t, 2, good)
	d, a := f.hosts[0].config(), f.hosts[1].config()
	d.Type = hixl.UC
	c, s := f.pair(hixl.DialOptions{QPConfig: d}, hixl.AcceptOptions{QPConfig: a, Receives: []hixl.RecvWR{{ID: 4, SGE: []hixl.SGE{f.hosts[1].mem.SGE(0, 100)}}}})
	require.NoError(t, c.PostSend(hixl.SendWR{Op: hixl.OpSend, Inline: []byte("a message")}))
	var wc [1]hixl.Completion
	f.until(time.Minute, func() bool { n, _ := f.hosts[1].cq.Poll(wc[:]); return n == 1 })
	require.NoError(t, wc[0].Err())
	require.Equal(t, "a message", string(f.hosts[1].mem.Bytes()[:9]))
	require.Error(t, s.Disconnect(over()))
	require.Error(t, f.ends(c))
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	f.rest(5 * time.Minute)
	f.empty()
}

// §5.2: every packet of connection management is one SEND_ONLY from QP1 to QP1 with
// the well-known Q_Key, 256 bytes of MAD in a UDP datagram of 288; the PSN counts by
// one whoever the peer is.
func TestPacketsOfQP1(t *testing.T) {
	f := newFabric(t, 3, good)
	next := map[netip.Addr]roce.PSN{}
	packets := 0
	f.net.SetFilter(func(d *sim.Delivery) sim.Verdict {
		p := &d.Packet
		if d.Err != nil || p.DestQP != roce.QPNGSI {
			return sim.Verdict{}
		}
		packets++
		require.Equal(t, roce.OpUDSendOnly, p.Opcode)
		require.Equal(t, roce.DETH{QKey: 0x80010000, SrcQP: roce.QPNGSI}, p.DETH)
		require.False(t, p.AckReq)
		require.EqualValues(t, 0xFFFF, p.PKey)
		require.Len(t, p.Payload, cm.MADLen)
		require.Len(t, d.Data, 288-8)
		if want, seen := next[d.Src]; seen {
			require.Equal(t, want, p.PSN)
		}
		next[d.Src] = p.PSN.Add(1)
		return sim.Verdict{}
	})
	f.pair(hixl.DialOptions{}, hixl.AcceptOptions{})
	c := f.dial(0, netip.AddrPortFrom(simAddr(2), 9), hixl.DialOptions{})
	require.ErrorIs(t, f.ends(c), hixl.ErrRejected)
	c, _ = f.pair(hixl.DialOptions{}, hixl.AcceptOptions{})
	require.Error(t, c.Disconnect(over()))
	require.Error(t, f.ends(c))
	require.GreaterOrEqual(t, packets, 3+2+3+2)
}
