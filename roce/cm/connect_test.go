package cm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
)

// §5.15: the minimum message flow, and its end.
func TestConnectAndDisconnect(t *testing.T) {
	w, client, server := pair(t)
	id, req := client.dial(server, func(p *cm.ConnectParams) { p.Private = []byte("hello"); p.SrcPort = 40000 })
	client.in(id, cm.StateREQSent)
	server.gets(client, req)
	e := server.happens(cm.EventConnectRequest)
	server.in(e.ID, cm.StateREQReceived)
	require.Equal(t, client.addr, e.Peer)
	require.Equal(t, append([]byte("hello"), make([]byte, 51)...), e.Private)
	require.Equal(t, "10.77.0.11:40000", e.Request.Src.String())
	require.Equal(t, "10.77.0.12:7174", e.Request.Dst.String())
	require.Equal(t, clientQPN, e.Request.QPN)
	require.Equal(t, client.guid, e.Request.CAGUID)
	require.Nil(t, e.Err())

	_, rep := server.accept(e.ID, func(p *cm.AcceptParams) { p.Private = []byte("welcome") })
	server.in(e.ID, cm.StateREPSent)
	client.gets(server, rep)
	r := client.happens(cm.EventConnectResponse)
	client.in(id, cm.StateREPReceived)
	require.Equal(t, "welcome", string(r.Private[:7]))
	require.Len(t, r.Private, 196)
	client.quiet()

	require.NoError(t, client.Confirm(id, []byte("bye")))
	client.in(id, cm.StateEstablished)
	server.gets(client, sends[cm.RTU](client))
	require.Equal(t, "bye", string(server.happens(cm.EventEstablished).Private[:3]))
	server.in(e.ID, cm.StateEstablished)
	require.Zero(t, client.Deadline())
	require.Zero(t, server.Deadline())

	require.NoError(t, client.Disconnect(w.now, id, []byte("done")))
	client.in(id, cm.StateDREQSent)
	server.gets(client, sends[cm.DREQ](client))
	end := server.happens(cm.EventDisconnected)
	require.False(t, end.Local)
	require.Equal(t, "done", string(end.Private[:4]))
	require.ErrorIs(t, end.Err(), cm.ErrDisconnected)
	server.in(e.ID, cm.StateTimewait)
	client.gets(server, sends[cm.DREP](server))
	require.True(t, client.happens(cm.EventDisconnected).Local)
	client.in(id, cm.StateTimewait)

	w.wait(time.Minute)
	require.Equal(t, clientQPN, client.happens(cm.EventTimewaitExit).QPN)
	require.Equal(t, serverQPN, server.happens(cm.EventTimewaitExit).QPN)
	client.empty()
	server.empty()
}

// §5.6: what a REQ and a REP say by default.
func TestDefaults(t *testing.T) {
	_, client, server := pair(t)
	l := replied(client, server)
	req, rep := *l.req, *l.rep
	require.NotZero(t, req.LocalID)
	require.Equal(t, uint32(req.LocalID), uint32(req.TID))
	require.NotEqual(t, req.LocalID, rep.LocalID)
	var ip cm.IPHeader
	require.NoError(t, ip.Decode(req.Private[:]))
	require.GreaterOrEqual(t, ip.SrcPort, uint16(0xC000))
	require.Equal(t, cm.REQ{
		Header: cm.Header{TID: req.TID}, LocalID: req.LocalID, Service: service, CAGUID: client.guid, QPN: clientQPN,
		ResponderResources: 16, InitiatorDepth: 16, RemoteTimeout: 20, LocalTimeout: 20, StartPSN: req.StartPSN,
		RetryCount: 7, PKey: 0xFFFF, MTU: roce.MTU1024, RNRRetry: 7, MaxCMRetries: 15,
		Primary: cm.Path{
			LocalLID: 0xFFFF, RemoteLID: 0xFFFF, LocalGID: cm.GIDOf(client.addr), RemoteGID: cm.GIDOf(server.addr),
			FlowLabel: roce.CMFlowLabel(ip.SrcPort, port), HopLimit: 64, ACKTimeout: 17,
		},
		Private: req.Private,
	}, req)
	require.Equal(t, cm.REP{
		Header: cm.Header{TID: req.TID}, LocalID: rep.LocalID, RemoteID: req.LocalID, QPN: serverQPN,
		StartPSN: rep.StartPSN, ResponderResources: 16, InitiatorDepth: 16, TargetACKDelay: 15, RNRRetry: 7,
		CAGUID: server.guid,
	}, rep)
}

// §5.7: each attribute comes from where the table says, PSNs crosswise.
func TestQPParams(t *testing.T) {
	_, client, server := pair(t, func(c *cm.Config) { c.MTU = roce.MTU4096; c.ACKDelay = 16 })
	psn := func(p roce.PSN) *roce.PSN { return &p }
	l := &link{client: client, server: server}
	l.cid, l.req = client.dial(server, func(p *cm.ConnectParams) {
		p.StartPSN, p.MTU, p.MaxRead, p.MaxDestRead = psn(0xCF7BF6), roce.MTU2048, 9, 5
		p.RetryCount, p.RNRRetry, p.MinRNRTimer = 3, cm.None, 1
		p.ACKTimeout, p.FlowLabel, p.TrafficClass, p.PKey, p.SRQ = 20, 0xABCDE, 0x68, 0x8001, true
	})
	server.gets(client, l.req)
	e := server.happens(cm.EventConnectRequest)
	require.Equal(t, uint8(5), e.Request.MaxRead, "the roles swap (§5.6)")
	require.Equal(t, uint8(9), e.Request.MaxDestRead)
	qp, rep := server.accept(e.ID, func(p *cm.AcceptParams) {
		p.StartPSN, p.MaxRead, p.MaxDestRead, p.RNRRetry, p.MinRNRTimer = psn(0xFEDFED), 4, 12, 5, 2
	})
	require.Equal(t, cm.QPParams{
		Peer: client.addr, DestQPN: clientQPN, SendPSN: 0xCF7BF6, RecvPSN: 0xFEDFED, MTU: roce.MTU2048,
		MaxRead: 4, MaxDestRead: 9, Timeout: 20, RetryCount: 3, RNRRetry: 0, MinRNRTimer: 2,
		FlowLabel: 0xABCDE, TrafficClass: 0x68, PKey: 0x8001, PeerSRQ: true,
	}, qp)
	client.gets(server, rep)
	require.Equal(t, cm.QPParams{
		Peer: server.addr, DestQPN: serverQPN, SendPSN: 0xFEDFED, RecvPSN: 0xCF7BF6, MTU: roce.MTU2048,
		MaxRead: 9, MaxDestRead: 4, Timeout: 20, RetryCount: 3, RNRRetry: 5, MinRNRTimer: 1,
		FlowLabel: 0xABCDE, TrafficClass: 0x68, PKey: 0x8001,
	}, client.happens(cm.EventConnectResponse).QP)
	require.Equal(t, uint8(20), l.req.Primary.ACKTimeout)
}

// §5.7: min_rnr_timer is not left at 0, which would be 655 ms (C5), unless asked.
func TestRNRTimer(t *testing.T) {
	_, client, server := pair(t)
	l := confirmed(client, server)
	require.Equal(t, uint8(12), l.clientQP.MinRNRTimer)
	require.Equal(t, uint8(12), l.serverQP.MinRNRTimer)
	l = asked(client, server, func(p *cm.ConnectParams) { p.QPN++ })
	qp, err := server.Prepare(l.sid, cm.AcceptParams{QPN: 9, MinRNRTimer: cm.None})
	require.NoError(t, err)
	require.Zero(t, qp.MinRNRTimer)
}

// §5.6: an answer offers at most what was asked, and an answer that offers more
// than was asked is cut.
func TestDepths(t *testing.T) {
	_, client, server := pair(t)
	l := replied(client, server, func(p *cm.ConnectParams) { p.MaxRead, p.MaxDestRead = cm.None, 2 })
	require.Zero(t, l.serverQP.MaxDestRead)
	require.Equal(t, uint8(2), l.serverQP.MaxRead)
	require.Zero(t, l.rep.ResponderResources)
	require.Equal(t, uint8(2), l.rep.InitiatorDepth)
	l.rep.ResponderResources, l.rep.InitiatorDepth = 77, 1
	client.gets(server, l.rep)
	qp := client.happens(cm.EventConnectResponse).QP
	require.Zero(t, qp.MaxRead)
	require.Equal(t, uint8(1), qp.MaxDestRead)
}

// C9: every answer carries the flow label and class of the REQ's path.
func TestFlowLabelOfAnswers(t *testing.T) {
	_, client, server := pair(t)
	l := asked(client, server, func(p *cm.ConnectParams) { p.FlowLabel, p.TrafficClass = 0x5BA59, 0x20 })
	check := func(what string) {
		t.Helper()
		all := server.TakeSends(nil)
		require.NotEmpty(t, all, what)
		for _, s := range all {
			require.Equal(t, uint32(0x5BA59), s.FlowLabel, what)
			require.Equal(t, uint8(0x20), s.TrafficClass, what)
			require.Equal(t, client.addr, s.To, what)
		}
	}
	server.gets(client, l.req)
	check("MRA")
	_, err := server.Prepare(l.sid, cm.AcceptParams{QPN: 7})
	require.NoError(t, err)
	require.NoError(t, server.Accept(server.w.now, l.sid))
	check("REP")
	server.w.wait(10 * time.Second)
	check("REP again")
	require.NoError(t, server.Established(l.sid))
	require.NoError(t, server.Disconnect(server.w.now, l.sid, nil))
	check("DREQ")
	l.req.Service, l.req.LocalID = 5, 5
	server.gets(client, l.req)
	check("REJ")
}

// C4: an ACK timeout of 1 has a packet lifetime of 0.
func TestSmallestACKTimeout(t *testing.T) {
	_, client, server := pair(t)
	_, req := client.dial(server, func(p *cm.ConnectParams) { p.ACKTimeout = 1 })
	require.Equal(t, uint8(15), req.Primary.ACKTimeout)
}

// §5.3: answers echo the REQ's transaction id; a DREQ's is its sender's own.
func TestTransactionIDs(t *testing.T) {
	w, client, server := pair(t)
	l := established(client, server)
	require.Equal(t, l.req.TID, l.rep.TID)
	require.Equal(t, l.req.TID, l.rtu.TID)
	require.NoError(t, client.Disconnect(w.now, l.cid, nil))
	dreq := sends[cm.DREQ](client)
	require.Equal(t, l.req.TID, dreq.TID)
	server.gets(client, dreq)
	require.Equal(t, dreq.TID, sends[cm.DREP](server).TID)
	server.happens(cm.EventDisconnected)

	l = established(client, server, func(p *cm.ConnectParams) { p.QPN = 9 })
	require.NoError(t, server.Disconnect(w.now, l.sid, nil))
	dreq = sends[cm.DREQ](server)
	require.NotEqual(t, l.req.TID, dreq.TID)
	require.Equal(t, uint32(l.rep.LocalID), uint32(dreq.TID))
	client.gets(server, dreq)
	require.Equal(t, dreq.TID, sends[cm.DREP](client).TID)
}

// IPv6, link-local with a zone: the zone stays here, the address goes out.
func TestIPv6(t *testing.T) {
	w := newWorld(t)
	client, server := w.host("fe80::11%eth0"), w.host("fe80::12%veth1")
	require.NoError(t, server.Listen(service))
	id, err := client.Connect(w.now, cm.ConnectParams{Peer: addr("fe80::12%eth0"), Service: service, QPN: 7})
	require.NoError(t, err)
	out := client.TakeSends(nil)
	require.Equal(t, addr("fe80::12%eth0"), out[0].To)
	server.Handle(w.now, addr("fe80::11%veth1"), out[0].MAD[:])
	e := server.happens(cm.EventConnectRequest)
	require.Equal(t, addr("fe80::11%veth1"), e.Peer)
	_, err = server.Prepare(e.ID, cm.AcceptParams{QPN: 8})
	require.NoError(t, err)
	require.NoError(t, server.Accept(w.now, e.ID))
	out = server.TakeSends(nil)
	require.Equal(t, e.Peer, out[0].To)
	client.Handle(w.now, addr("fe80::12%eth0"), out[0].MAD[:])
	require.Equal(t, addr("fe80::12"), client.happens(cm.EventConnectResponse).QP.Peer)
	client.in(id, cm.StateREPReceived)
}

// A NIC connects to itself: both ends live in one agent.
func TestLoopback(t *testing.T) {
	w := newWorld(t)
	h := w.host("127.0.0.1")
	require.NoError(t, h.Listen(service))
	l := established(h, h)
	require.NotEqual(t, l.cid, l.sid)
	require.NoError(t, h.Disconnect(w.now, l.cid, nil))
	h.gets(h, sends[cm.DREQ](h))
	h.happens(cm.EventDisconnected)
	h.gets(h, sends[cm.DREP](h))
	h.happens(cm.EventDisconnected)
	w.wait(time.Minute)
	require.Equal(t, []string{"TIMEWAIT_EXIT", "TIMEWAIT_EXIT"}, kinds(h.TakeEvents(nil)))
	h.empty()
}

// Two hosts that ask each other at the same time get two connections: there is no
// peer-to-peer opening in RDMA CM.
func TestCrossingREQ(t *testing.T) {
	_, a, b := pair(t)
	require.NoError(t, a.Listen(service))
	ida, reqa := a.dial(b)
	idb, reqb := b.dial(a)
	b.gets(a, reqa)
	a.gets(b, reqb)
	sa, sb := a.happens(cm.EventConnectRequest).ID, b.happens(cm.EventConnectRequest).ID
	_, repa := a.accept(sa, func(p *cm.AcceptParams) { p.QPN = 0x61 })
	_, repb := b.accept(sb, func(p *cm.AcceptParams) { p.QPN = 0x62 })
	a.gets(b, repb)
	b.gets(a, repa)
	require.EqualValues(t, 0x62, a.happens(cm.EventConnectResponse).QP.DestQPN)
	require.EqualValues(t, 0x61, b.happens(cm.EventConnectResponse).QP.DestQPN)
	require.NoError(t, a.Confirm(ida, nil))
	require.NoError(t, b.Confirm(idb, nil))
	b.gets(a, sends[cm.RTU](a))
	a.gets(b, sends[cm.RTU](b))
	a.in(sa, cm.StateEstablished)
	b.in(sb, cm.StateEstablished)
}

// UC connections and service ids without ports take the same way.
func TestUnreliableConnection(t *testing.T) {
	_, client, server := pair(t)
	require.NoError(t, server.Listen(0x1001))
	id, req := client.dial(server, func(p *cm.ConnectParams) {
		p.Transport, p.Service, p.Private = cm.UC, 0x1001, make([]byte, 92)
	})
	require.Equal(t, cm.UC, req.Transport)
	server.gets(client, req)
	e := server.happens(cm.EventConnectRequest)
	require.Len(t, e.Private, 92)
	require.False(t, e.Request.Src.IsValid())
	qp, rep := server.accept(e.ID)
	require.Equal(t, cm.UC, qp.Transport)
	client.gets(server, rep)
	require.Equal(t, cm.UC, client.happens(cm.EventConnectResponse).QP.Transport)
	client.in(id, cm.StateREPReceived)
}

// §5.9: ids are not 0, not predictable from the last one, and not used again soon,
// even when the random source repeats itself.
func TestCommIDs(t *testing.T) {
	w := newWorld(t)
	h := w.host("10.0.0.1", func(c *cm.Config) { c.Rand = func() uint64 { return 0 } })
	seen := map[cm.CommID]bool{}
	for range 1000 {
		id, err := h.Connect(w.now, cm.ConnectParams{Peer: addr("10.0.0.2"), Service: service, QPN: 5})
		require.NoError(t, err)
		require.NotZero(t, id)
		require.False(t, seen[id], "%v used again", id)
		seen[id] = true
		h.Destroy(w.now, id)
	}
	h.TakeEvents(nil)
	h.empty()
}
