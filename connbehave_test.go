package hixl_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
	"github.com/gohixl/hixl/transport/sim"
)

var good = sim.Config{Link: sim.Link{Delay: 100 * time.Microsecond}}

// attribute returns which message of connection management a packet carries, or 0.
func attribute(d *sim.Delivery) cm.Attribute {
	if d.Err != nil || d.Packet.DestQP != roce.QPNGSI {
		return 0
	}
	a, _ := cm.Peek(d.Packet.Payload)
	return a
}

// lose drops every message of a kind.
func (f *fabric) lose(kinds ...cm.Attribute) {
	f.net.SetFilter(func(d *sim.Delivery) (v sim.Verdict) {
		for _, k := range kinds {
			v.Drop = v.Drop || attribute(d) == k
		}
		return v
	})
}

// request waits for a request at a listener.
func (f *fabric) request(l *hixl.Listener) (r *hixl.Request) {
	f.t.Helper()
	f.until(time.Minute, func() bool {
		got, err := l.AcceptRequest(over())
		r = got
		return err == nil
	})
	return r
}

// ends waits for the end of a connection.
func (f *fabric) ends(c *hixl.Conn) error {
	f.t.Helper()
	f.until(5*time.Minute, func() bool { return closed(c.Done()) })
	return c.Err()
}

// Who accepts sees what the peer wants, chooses, and sets the limits of both.
func TestTwoSteps(t *testing.T) {
	f := newFabric(t, 2, good)
	l := f.hosts[1].listen(t, ":7174", hixl.AcceptOptions{})
	qpc := f.hosts[0].config()
	qpc.MaxReads = 3
	c := f.dial(0, l.Addr(), hixl.DialOptions{
		QPConfig: qpc, PrivateData: []byte("who"), LocalPort: 50000,
		Connect: hixl.ConnectOptions{MaxReads: 5, RNRRetries: 4, Retries: 6, MTU: 1024, TrafficClass: 0x20, FlowLabel: 77},
	})
	r := f.request(l)
	require.Equal(t, "who", string(r.PrivateData()))
	require.Equal(t, c.LocalAddr(), r.RemoteAddr())
	require.EqualValues(t, 50000, r.RemoteAddr().Port())
	require.Equal(t, l.Addr(), r.LocalAddr())
	require.Equal(t, hixl.Offer{
		Type: hixl.RC, MTU: 1024, MaxReads: 3, PeerReads: 5, Retries: 6, RNRRetries: 4, QPN: c.QPN(), TrafficClass: 0x20, FlowLabel: 77, Hixl: true,
	}, r.Offer())
	_, err := r.Accept(hixl.AcceptOptions{})
	require.ErrorIs(t, err, hixl.ErrConfig, "no domain; not decided")
	q, err := f.hosts[1].nic.CreateQP(f.hosts[1].config())
	require.NoError(t, err)
	s, err := r.Accept(hixl.AcceptOptions{QP: q, Connect: hixl.ConnectOptions{MaxReads: 9, RNRRetries: hixl.None, RNRTimer: 20, Timeout: 18}})
	require.NoError(t, err)
	require.Same(t, q, s.QP)
	require.Equal(t, hixl.StateRTS, s.State(), "usable at once")
	_, err = r.Accept(hixl.AcceptOptions{QP: q})
	require.ErrorContains(t, err, "one decision")
	require.Error(t, r.Reject(nil))
	f.until(time.Minute, func() bool { return closed(c.Established()) && closed(s.Established()) })

	a, b := c.Query(), s.Query()
	require.EqualValues(t, []uint8{5, 3}, []uint8{a.MaxRead, a.MaxDestRead})
	require.EqualValues(t, []uint8{3, 5}, []uint8{b.MaxRead, b.MaxDestRead})
	require.EqualValues(t, []uint8{0, 4}, []uint8{a.RNRRetry, b.RNRRetry}, "each says what the other may do")
	require.EqualValues(t, []uint8{6, 6}, []uint8{a.RetryCount, b.RetryCount})
	require.EqualValues(t, []uint8{12, 20}, []uint8{a.MinRNRTimer, b.MinRNRTimer})
	require.EqualValues(t, []uint8{17, 18}, []uint8{a.Timeout, b.Timeout})
	require.Equal(t, a.SendPSN, b.RecvPSN)
	require.Equal(t, b.SendPSN, a.RecvPSN)
	require.Equal(t, c.QPN(), b.DestQPN)
	for _, at := range []hixl.Attr{a, b} {
		require.Equal(t, roce.MTU1024, at.PathMTU)
		require.EqualValues(t, 77, at.AV.FlowLabel)
		require.EqualValues(t, 0x20, at.AV.TrafficClass)
		require.True(t, at.AV.SmallIDs)
	}
	f.exchange(0, 1, c, 1)
}

func TestReject(t *testing.T) {
	f := newFabric(t, 2, good)
	l := f.hosts[1].listen(t, ":7174", hixl.AcceptOptions{})
	c := f.dial(0, l.Addr(), hixl.DialOptions{})
	require.NoError(t, f.request(l).Reject([]byte("not you")))
	err := f.ends(c)
	var rejected *hixl.RejectedError
	require.ErrorAs(t, err, &rejected)
	require.ErrorIs(t, err, hixl.ErrRejected)
	require.Equal(t, hixl.RejectConsumer, rejected.Reason)
	require.Equal(t, "not you", string(rejected.PrivateData[:7]))
	require.Equal(t, l.Addr(), rejected.Peer)
	require.EqualError(t, err, "hixl: dial 10.93.0.1:7174: rejected: consumer reject (28): its application said no, perhaps with private data")
	require.NoError(t, c.Close())
	f.rest(time.Minute)
	f.empty()
}

// A queue pair of the application's survives what is not accepted.
func TestOwnQueuePair(t *testing.T) {
	f := newFabric(t, 2, good)
	l := f.hosts[1].listen(t, ":7174", hixl.AcceptOptions{})
	q, err := f.hosts[0].nic.CreateQP(f.hosts[0].config())
	require.NoError(t, err)
	require.NoError(t, q.PostRecv(hixl.RecvWR{ID: 3}))
	o := hixl.DialOptions{QP: q}
	c := f.dial(0, l.Addr(), o)
	_, err = f.hosts[0].nic.StartDial(l.Addr(), o)
	require.ErrorContains(t, err, "without a connection")
	require.NoError(t, f.request(l).Reject(nil))
	require.Error(t, f.ends(c))
	require.Equal(t, hixl.StateInit, q.State())
	c = f.dial(0, l.Addr(), o)
	f.until(time.Minute, func() bool { _, err := l.Accept(over()); return err == nil })
	f.exchange(0, 1, c, 9)

	// After the end its number rests before it is connected again.
	require.NoError(t, q.Reset())
	require.True(t, closed(c.Done()))
	_, err = f.hosts[0].nic.StartDial(l.Addr(), o)
	require.ErrorContains(t, err, "TIMEWAIT")
	f.rest(5 * time.Minute)
	f.dial(0, l.Addr(), o)
	require.NoError(t, q.Close())

	ud, err := f.hosts[0].nic.CreateQP(hixl.QPConfig{PD: f.hosts[0].pd, SendCQ: f.hosts[0].cq, RecvCQ: f.hosts[0].cq, Type: hixl.UD})
	require.NoError(t, err)
	_, err = f.hosts[0].nic.StartDial(l.Addr(), hixl.DialOptions{QP: ud})
	require.ErrorContains(t, err, "ResolveUD")
	_, err = f.hosts[1].nic.StartDial(l.Addr(), hixl.DialOptions{QP: ud})
	require.ErrorContains(t, err, "same NIC")
	require.NoError(t, ud.Close())
}

// The backlog is bounded, and a full one says so.
func TestBacklog(t *testing.T) {
	f := newFabric(t, 2, good)
	l, err := f.hosts[1].nic.Listen(t.Context(), ":7174", hixl.ListenConfig{Backlog: 3})
	require.NoError(t, err)
	var cs []*hixl.Conn
	for range 5 {
		cs = append(cs, f.dial(0, l.Addr(), hixl.DialOptions{}))
	}
	for _, c := range cs[3:] {
		var rejected *hixl.RejectedError
		require.ErrorAs(t, f.ends(c), &rejected)
		require.Equal(t, hixl.RejectNoResources, rejected.Reason)
	}
	require.NoError(t, l.Close(), "those that wait are refused")
	for _, c := range cs[:3] {
		require.ErrorContains(t, f.ends(c), "nobody listens")
	}
	_, err = l.AcceptRequest(over())
	require.ErrorIs(t, err, net.ErrClosed)
	f.rest(time.Minute)
	f.empty()
}

// A connection that is made when its listener closes is closed too.
func TestListenerClosesWhatNobodyTook(t *testing.T) {
	f := newFabric(t, 2, good)
	l := f.hosts[1].listen(t, ":7174", hixl.AcceptOptions{})
	first, second := f.dial(0, l.Addr(), hixl.DialOptions{}), f.dial(0, l.Addr(), hixl.DialOptions{})
	f.lose(cm.AttrRTU)
	f.until(time.Minute, func() bool { // begins to accept
		_, err := l.Accept(over())
		require.Error(t, err)
		return closed(first.Established()) && closed(second.Established())
	})
	require.NoError(t, l.Close())
	f.lose()
	require.ErrorIs(t, f.ends(first), hixl.ErrDisconnected)
	require.ErrorIs(t, f.ends(second), hixl.ErrDisconnected)
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
	f.rest(5 * time.Minute)
	f.empty()
}

// Who waits for an established connection does not wait for the first packet's
// confirmation when that packet is there (§5.12).
func TestFirstPacketEstablishes(t *testing.T) {
	f := newFabric(t, 2, good)
	l := f.hosts[1].listen(t, ":7174", hixl.AcceptOptions{})
	c := f.dial(0, l.Addr(), hixl.DialOptions{})
	s, err := f.request(l).Accept(hixl.AcceptOptions{QPConfig: f.hosts[1].config()})
	require.NoError(t, err)
	f.lose(cm.AttrRTU)
	f.until(time.Minute, func() bool { return closed(c.Established()) })
	begun := f.net.Now()
	f.net.Advance(begun.Add(time.Millisecond))
	f.settle()
	require.False(t, closed(s.Established()))
	f.exchange(0, 1, c, 4)
	require.True(t, closed(s.Established()))
	require.Less(t, f.net.Now().Sub(begun), 10*time.Millisecond)
}

// The peer dies: work fails, the connection ends with the reason, and its number
// rests until nobody waits for the peer any more.
func TestPeerDies(t *testing.T) {
	f := newFabric(t, 2, good)
	c, _ := f.pair(hixl.DialOptions{}, hixl.AcceptOptions{})
	f.net.Cut(simAddr(0), simAddr(1))
	require.NoError(t, c.PostSend(hixl.SendWR{ID: 1, Op: hixl.OpWrite, RemoteAddr: f.hosts[1].mem.Addr(), RKey: f.hosts[1].mem.RKey()}))
	err := f.ends(c)
	require.ErrorIs(t, err, hixl.ErrDisconnected)
	require.ErrorIs(t, err, cq.ErrRetryExceeded)
	require.EqualError(t, err, "hixl: connection to 10.93.0.1:18515 was ended by this side: cq: transport retry counter exceeded (12)")
	var wc [2]hixl.Completion
	n, err := f.hosts[0].cq.Poll(wc[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.ErrorIs(t, wc[0].Err(), cq.ErrRetryExceeded)
	require.NoError(t, c.Close())
	require.Equal(t, 1, f.hosts[0].nic.ConnStats().HeldQPNs)
	f.rest(10 * time.Minute)
	require.Zero(t, f.hosts[0].nic.ConnStats().HeldQPNs)
	require.Zero(t, f.hosts[0].nic.ConnStats().Connections)
	require.Zero(t, f.hosts[0].nic.Stats().QPs)
}

// A failure that the peer causes ends the connection on both sides.
func TestRemoteErrorEndsBoth(t *testing.T) {
	f := newFabric(t, 2, good)
	c, s := f.pair(hixl.DialOptions{}, hixl.AcceptOptions{})
	require.NoError(t, c.PostSend(hixl.SendWR{Op: hixl.OpWrite, SGE: []hixl.SGE{f.hosts[0].mem.SGE(0, 8)}, RemoteAddr: 5, RKey: 6}))
	require.ErrorIs(t, f.ends(c), cq.ErrRemoteAccess)
	require.ErrorIs(t, f.ends(s), hixl.ErrDisconnected)
	require.Equal(t, hixl.StateError, s.State())
}

// A number rests from Close to the end of TIMEWAIT, on both sides.
func TestNumbersRest(t *testing.T) {
	f := newFabric(t, 2, good)
	c, s := f.pair(hixl.DialOptions{}, hixl.AcceptOptions{})
	require.NoError(t, c.Close())
	require.Error(t, f.ends(s))
	require.NoError(t, s.Close())
	begun := f.net.Now()
	f.until(time.Second, func() bool { return f.hosts[0].nic.ConnStats().Timewait == 1 })
	for _, h := range f.hosts {
		require.Zero(t, h.nic.Stats().QPs)
		require.Equal(t, 1, h.nic.ConnStats().HeldQPNs)
		require.Equal(t, 1, h.nic.ConnStats().Timewait)
	}
	f.rest(5 * time.Minute)
	require.Greater(t, f.net.Now().Sub(begun), 500*time.Millisecond)
	f.empty()
}

// The larger of two MTUs gives way.
func TestMTUGivesWay(t *testing.T) {
	f := newFabric(t, 2, good, func(i int, c *hixl.Config) {
		if i == 1 {
			c.MTU = 512
		}
	})
	c, _ := f.pair(hixl.DialOptions{}, hixl.AcceptOptions{})
	require.Equal(t, roce.MTU512, c.Query().PathMTU)
	f.exchange(0, 1, c, 1)
	f.exchange(0, 1, c, 2)

	l := f.hosts[1].listen(t, ":1", hixl.AcceptOptions{})
	c = f.dial(0, l.Addr(), hixl.DialOptions{Connect: hixl.ConnectOptions{MTU: 1024}})
	var rejected *hixl.RejectedError
	require.ErrorAs(t, f.ends(c), &rejected)
	require.Equal(t, hixl.RejectMTU, rejected.Reason, "asked for, so not changed")
	_, err := f.hosts[1].nic.StartDial(l.Addr(), hixl.DialOptions{QPConfig: f.hosts[1].config(), Connect: hixl.ConnectOptions{MTU: 1024}})
	require.ErrorIs(t, err, hixl.ErrConfig)
}

// What is taken back leaves nothing on either side, at whatever point.
func TestTakeBack(t *testing.T) {
	for _, lost := range [][]cm.Attribute{nil, {cm.AttrREQ}, {cm.AttrREP}, {cm.AttrRTU}, {cm.AttrREJ}, {cm.AttrDREQ}} {
		for _, wait := range []time.Duration{0, 50 * time.Microsecond, 150 * time.Microsecond, 250 * time.Microsecond, time.Second} {
			f := newFabric(t, 2, good)
			l := f.hosts[1].listen(t, ":7174", hixl.AcceptOptions{})
			f.lose(lost...)
			c := f.dial(0, l.Addr(), hixl.DialOptions{})
			var s *hixl.Conn
			for end := f.net.Now().Add(wait); f.net.Now() < end; {
				if r, err := l.AcceptRequest(over()); err == nil {
					s, err = r.Accept(hixl.AcceptOptions{QPConfig: f.hosts[1].config()})
					require.NoError(t, err)
				}
				f.settle()
				f.net.Advance(min(end, f.net.Now().Add(50*time.Microsecond)))
			}
			require.NoError(t, c.Close())
			require.True(t, closed(c.Done()))
			require.Error(t, c.Err())
			f.rest(time.Hour)
			require.NoError(t, l.Close())
			if s != nil {
				require.NoError(t, s.Close())
			}
			f.rest(time.Hour)
			f.empty()
		}
	}
}

// Nobody answers: the reason comes, late.
func TestSilentPeer(t *testing.T) {
	f := newFabric(t, 1, good)
	c := f.dial(0, netip.AddrPortFrom(simAddr(9), 1), hixl.DialOptions{})
	begun := f.net.Now()
	err := f.ends(c)
	require.ErrorIs(t, err, hixl.ErrUnreachable)
	require.ErrorContains(t, err, "hixl: dial 10.93.0.9:1: cm: peer does not answer; is an RDMA NIC")
	var ce *hixl.ConnError
	require.True(t, errors.As(err, &ce) && ce.Timeout())
	require.Less(t, f.net.Now().Sub(begun), 2*time.Minute)
	require.Greater(t, f.net.Now().Sub(begun), 30*time.Second)
	f.rest(time.Minute)
	f.empty()
}

// Private data that fills all there is leaves no room for the mark, and works as
// with a foreign stack.
func TestForeign(t *testing.T) {
	f := newFabric(t, 2, sim.Config{Link: good.Link, HideHeaders: true})
	all := make([]byte, hixl.MaxDialData)
	all[55] = 1
	c, s := f.pair(hixl.DialOptions{PrivateData: all}, hixl.AcceptOptions{PrivateData: []byte{1, 2, 3}})
	require.Equal(t, all, s.PrivateData())
	require.False(t, s.IsHixl())
	require.False(t, c.IsHixl(), "the answer is not marked either")
	require.Len(t, c.PrivateData(), hixl.MaxAcceptData)
	require.Equal(t, []byte{1, 2, 3, 0}, c.PrivateData()[:4])
	require.False(t, c.Query().AV.SmallIDs)
	f.exchange(0, 1, c, 1)
	f.exchange(1, 0, s, 2)

	_, err := f.hosts[0].nic.StartDial(c.RemoteAddr(), hixl.DialOptions{QPConfig: f.hosts[0].config(), PrivateData: make([]byte, 57)})
	require.ErrorContains(t, err, "PrivateData is 57 bytes, allowed: at most 56")
}

// The end of a NIC is the end of all on it, and the peers learn it.
func TestNICClose(t *testing.T) {
	f := newFabric(t, 2, good)
	c, s := f.pair(hixl.DialOptions{}, hixl.AcceptOptions{})
	l := f.hosts[0].listen(t, ":1", hixl.AcceptOptions{})
	dialing := f.dial(0, netip.AddrPortFrom(simAddr(1), 99), hixl.DialOptions{})
	require.NoError(t, f.hosts[0].nic.Close())
	for _, err := range []error{c.Err(), dialing.Err()} {
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, err, hixl.ErrClosed)
	}
	_, err := l.Accept(over())
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, l.Close())
	_, err = f.hosts[0].nic.StartDial(s.RemoteAddr(), hixl.DialOptions{QPConfig: f.hosts[0].config()})
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = f.hosts[0].nic.Listen(t.Context(), ":1", hixl.ListenConfig{})
	require.ErrorIs(t, err, net.ErrClosed)
	f.hosts = f.hosts[1:]
	require.ErrorIs(t, f.ends(s), hixl.ErrDisconnected)
	require.NoError(t, c.Close())
}

func TestListenErrors(t *testing.T) {
	f := newFabric(t, 1, good)
	n := f.hosts[0].nic
	l, err := n.Listen(t.Context(), "0.0.0.0:5", hixl.ListenConfig{})
	require.NoError(t, err)
	require.Equal(t, "10.93.0.0:5", l.Addr().String())
	for address, says := range map[string]string{
		"10.93.0.0:5": "somebody listens on tcp/5 already", "10.1.1.1:5": "the NIC's address, 10.93.0.0, or none", "[::1]:5": "family",
		"5": "missing port", ":70000": "invalid port",
	} {
		_, err := n.Listen(t.Context(), address, hixl.ListenConfig{})
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "hixl: listen "+address)
	}
	_, err = n.Listen(t.Context(), ":5", hixl.ListenConfig{})
	require.ErrorIs(t, err, hixl.ErrListening)
	q, err := n.CreateQP(f.hosts[0].config())
	require.NoError(t, err)
	_, err = n.Listen(t.Context(), ":6", hixl.ListenConfig{Accept: hixl.AcceptOptions{QP: q}})
	require.ErrorContains(t, err, "ListenConfig.Accept.QP")
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	l, err = n.Listen(t.Context(), ":5", hixl.ListenConfig{})
	require.NoError(t, err)
	require.NoError(t, l.Close())
}
