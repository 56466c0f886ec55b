package cm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
)

// from every state, each message a stranger could send with ids that are right
// changes nothing: it comes from the wrong address.
func TestSpoofedMessages(t *testing.T) {
	w, client, server := pair(t)
	stranger := addr("10.77.0.66")
	messages := func(own, remote cm.CommID, qpn roce.QPN, guid uint64) []cm.Message {
		info := func(m *cm.REJ) *cm.REJ {
			m.InfoLen = 8
			for i := range 8 {
				m.ARI[i] = byte(guid >> (56 - 8*i))
			}
			return m
		}
		return []cm.Message{
			&cm.REP{LocalID: 9, RemoteID: own, QPN: 9}, &cm.REP{LocalID: remote, RemoteID: own, QPN: 9},
			&cm.RTU{LocalID: remote, RemoteID: own},
			&cm.MRA{LocalID: remote, RemoteID: own, ServiceTimeout: 31},
			&cm.MRA{LocalID: remote, RemoteID: own, ServiceTimeout: 31, Answered: cm.ToREP},
			&cm.REJ{LocalID: remote, RemoteID: own}, &cm.REJ{LocalID: remote, RemoteID: own, Rejected: cm.ToREP},
			&cm.REJ{LocalID: remote, RemoteID: own, Rejected: cm.ToOther},
			info(&cm.REJ{LocalID: remote, Reason: cm.ReasonTimeout, Rejected: cm.ToOther}),
			&cm.DREP{LocalID: remote, RemoteID: own},
			&cm.LAP{LocalID: remote, RemoteID: own, QPN: qpn}, &cm.APR{LocalID: remote, RemoteID: own},
			&cm.SIDRREP{RequestID: own, QPN: 5},
		}
	}
	check := func(h *host, id, remote cm.CommID, qpn roce.QPN, guid uint64) {
		t.Helper()
		state, _ := h.State(id)
		deadline, usage := h.Deadline(), h.Usage()
		for _, m := range messages(id, remote, qpn, guid) {
			h.getsFrom(stranger, m)
			require.Empty(t, attributes(h.sent()), "%v in %v", m.Attribute(), state)
			require.Empty(t, kinds(h.TakeEvents(nil)), "%v in %v", m.Attribute(), state)
		}
		h.getsFrom(stranger, &cm.DREQ{LocalID: remote, RemoteID: id, QPN: qpn})
		sends[cm.DREP](h) // what anybody gets who asks for anything (§5.9)
		h.uneventful()
		h.in(id, state)
		require.Equal(t, deadline, h.Deadline())
		require.Equal(t, usage, h.Usage())
	}
	l := &link{client: client, server: server}
	l.cid, l.req = client.dial(server)
	check(client, l.cid, 0, clientQPN, server.guid)
	server.gets(client, l.req)
	l.sid = server.happens(cm.EventConnectRequest).ID
	check(server, l.sid, l.cid, 0, client.guid)
	server.gets(client, l.req)
	mra := sends[cm.MRA](server)
	check(server, l.sid, l.cid, 0, client.guid)
	client.gets(server, mra)
	check(client, l.cid, 0, clientQPN, server.guid)
	_, l.rep = server.accept(l.sid)
	check(server, l.sid, l.cid, serverQPN, client.guid)
	client.gets(server, l.rep)
	client.happens(cm.EventConnectResponse)
	check(client, l.cid, l.sid, clientQPN, server.guid)
	require.NoError(t, client.Confirm(l.cid, nil))
	server.gets(client, sends[cm.RTU](client))
	server.happens(cm.EventEstablished)
	check(client, l.cid, l.sid, clientQPN, server.guid)
	check(server, l.sid, l.cid, serverQPN, client.guid)
	require.NoError(t, client.Disconnect(w.now, l.cid, nil))
	dreq := sends[cm.DREQ](client)
	check(client, l.cid, l.sid, clientQPN, server.guid)
	server.gets(client, dreq)
	server.sent()
	server.happens(cm.EventDisconnected)
	check(server, l.sid, l.cid, serverQPN, client.guid)
}

// The peer itself, with ids that are wrong by one, changes nothing either.
func TestWrongIDs(t *testing.T) {
	_, client, server := pair(t)
	l := replied(client, server)
	for _, ids := range [][2]cm.CommID{{l.cid, l.sid + 1}, {l.cid + 1, l.sid}, {0, l.sid}, {l.cid, 0}, {0, 0}} {
		for _, m := range []cm.Message{
			&cm.RTU{LocalID: ids[0], RemoteID: ids[1]},
			&cm.MRA{LocalID: ids[0], RemoteID: ids[1], Answered: cm.ToREP},
			&cm.REJ{LocalID: ids[0], RemoteID: ids[1], Rejected: cm.ToREP},
			&cm.REJ{LocalID: ids[0], RemoteID: ids[1], Rejected: cm.ToREQ},
			&cm.DREP{LocalID: ids[0], RemoteID: ids[1]},
			&cm.LAP{LocalID: ids[0], RemoteID: ids[1], QPN: serverQPN},
		} {
			server.gets(client, m)
			server.untouched()
		}
	}
	server.in(l.sid, cm.StateREPSent)
	client.gets(server, &cm.REJ{LocalID: 0, RemoteID: l.cid, Rejected: cm.ToREP}) // nothing to reject yet
	client.gets(server, &cm.REP{LocalID: 0, RemoteID: l.cid, QPN: 5})
	client.gets(server, &cm.REP{LocalID: 5, RemoteID: l.cid, QPN: 1})
	client.untouched()
	client.in(l.cid, cm.StateREQSent)
}

// What is no message of connection management, or comes from an address that
// nobody has, is counted and dropped (§5.3, §5.5).
func TestGarbage(t *testing.T) {
	_, client, server := pair(t)
	_, req := client.dial(server)
	mad := req.Append(nil)
	for _, src := range []string{"127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "::"} {
		server.Handle(server.w.now, addr(src), mad)
	}
	require.Equal(t, uint64(5), server.Stats().Ignored)
	server.Handle(server.w.now, client.addr, nil)
	server.Handle(server.w.now, client.addr, mad[:255])
	mad[1] = 4
	server.Handle(server.w.now, client.addr, mad)
	require.Equal(t, uint64(3), server.Stats().Malformed)
	req.LocalID = 0
	server.gets(client, req)
	server.untouched()
	server.empty()
}

// A peer that names the id of another of its connections in a REP gets nowhere.
func TestREPWithUsedID(t *testing.T) {
	_, client, server := pair(t)
	l := established(client, server)
	id, _ := client.dial(server, func(p *cm.ConnectParams) { p.QPN = 9 })
	client.gets(server, &cm.REP{LocalID: l.sid, RemoteID: id, QPN: 99, CAGUID: server.guid})
	client.untouched()
	client.in(id, cm.StateREQSent)
	client.in(l.cid, cm.StateEstablished)
}

// Limits: requests that wait, of one peer and of all, get reason 3, connections
// beyond what the NIC holds reason 1; those that go make room.
func TestLimits(t *testing.T) {
	w, _, server := pair(t, func(c *cm.Config) { c.MaxHalfOpen, c.MaxHalfOpenPerPeer, c.MaxConnections = 5, 3, 6 })
	ask := func(client *host) (cm.CommID, *cm.REJ) {
		_, req := client.dial(server, func(p *cm.ConnectParams) { p.QPN = roce.QPN(client.Usage().Connections + 10) })
		server.gets(client, req)
		if all := server.TakeEvents(nil); len(all) > 0 {
			require.Equal(t, []string{"CONNECT_REQUEST"}, kinds(all))
			server.quiet()
			return all[0].ID, nil
		}
		return 0, sends[cm.REJ](server)
	}
	one, two, three := w.host("10.77.1.1"), w.host("10.77.1.2"), w.host("10.77.1.3")
	var ids []cm.CommID
	admitted := func(client *host) {
		t.Helper()
		id, rej := ask(client)
		require.Nil(t, rej)
		ids = append(ids, id)
	}
	refused := func(client *host, reason cm.Reason) {
		t.Helper()
		_, rej := ask(client)
		require.NotNil(t, rej)
		require.Equal(t, reason, rej.Reason)
	}
	admitted(one)
	admitted(one)
	admitted(one)
	refused(one, cm.ReasonNoResources)
	admitted(two)
	admitted(two)
	refused(two, cm.ReasonNoResources) // MaxHalfOpen
	refused(three, cm.ReasonNoResources)
	require.Equal(t, uint64(3), server.Stats().RefusedLimit)

	server.accept(ids[0], func(p *cm.AcceptParams) { p.QPN = 100 })
	refused(one, cm.ReasonNoResources) // until it is established
	require.NoError(t, server.Established(ids[0]))
	server.happens(cm.EventEstablished)
	admitted(one)
	refused(three, cm.ReasonNoQP) // MaxConnections
	_, err := server.Connect(w.now, cm.ConnectParams{Peer: one.addr, Service: service, QPN: 5})
	require.ErrorIs(t, err, cm.ErrLimit)
	require.EqualError(t, err, "cm: MaxConnections is 6 and reached: close connections or raise it")
	require.NoError(t, server.Reject(w.now, ids[1], cm.RejectParams{}))
	server.happens(cm.EventTimewaitExit)
	server.sent()
	admitted(three)
	server.Shutdown(w.now)
	w.wait(time.Minute)
	server.TakeEvents(nil)
	require.Zero(t, server.Usage())
}

// SIDR: what waits is bounded for each peer, what is remembered makes room.
func TestSIDRLimits(t *testing.T) {
	w, client, server := pair(t, func(c *cm.Config) { c.MaxSIDR, c.MaxHalfOpenPerPeer = 3, 2 })
	require.NoError(t, server.Listen(udp))
	ask := func(n cm.CommID) {
		ip := cm.IPHeader{SrcPort: 1, Src: client.addr, Dst: server.addr}
		m := &cm.SIDRREQ{RequestID: n, Service: udp}
		ip.Append(m.Private[:0])
		server.gets(client, m)
	}
	var ids []cm.CommID
	for n := range cm.CommID(2) {
		ask(n)
		ids = append(ids, server.happens(cm.EventSIDRRequest).ID)
	}
	ask(2)
	require.Equal(t, cm.SIDRNoQP, sends[cm.SIDRREP](server).Status)
	server.uneventful()
	for _, id := range ids {
		require.NoError(t, server.AnswerSIDR(w.now, id, cm.SIDRAnswer{QPN: 5}))
	}
	server.sent()
	ask(2)
	server.happens(cm.EventSIDRRequest)
	ask(3) // forgets the answer to 0
	server.happens(cm.EventSIDRRequest)
	require.Equal(t, 3, server.Usage().SIDR)
	ask(1)
	sends[cm.SIDRREP](server)
	w.wait(2 * time.Minute)
	server.empty()

	for range 3 {
		client.resolve(server)
	}
	_, err := client.Resolve(w.now, cm.ResolveParams{Peer: server.addr, Service: udp})
	require.ErrorIs(t, err, cm.ErrLimit)
}

// MADs that nobody takes are dropped, not hoarded.
func TestUntakenSends(t *testing.T) {
	_, client, server := pair(t)
	for range 1<<14 + 10 {
		server.gets(client, &cm.DREQ{LocalID: 1, RemoteID: 2})
	}
	require.Equal(t, uint64(10), server.Stats().Unsent)
	require.Len(t, server.TakeSends(nil), 1<<14)
	server.quiet()
}

// A DREQ cannot mean a queue pair whose number its sender was not told.
func TestDREQBeforeREP(t *testing.T) {
	_, client, server := pair(t)
	l := asked(client, server)
	_, err := server.Prepare(l.sid, cm.AcceptParams{QPN: serverQPN})
	require.NoError(t, err)
	server.gets(client, &cm.DREQ{LocalID: l.cid, RemoteID: l.sid, QPN: serverQPN})
	server.untouched()
	server.in(l.sid, cm.StateREQReceived)
}

// A REQ with the id by which we know the peer's end of a connection of ours.
func TestREQWithUsedID(t *testing.T) {
	_, client, server := pair(t)
	l := established(client, server)
	require.NoError(t, client.Listen(service))
	_, req := server.dial(client, func(p *cm.ConnectParams) { p.QPN = 9 })
	req.LocalID = l.sid
	client.gets(server, req)
	client.untouched()
	client.in(l.cid, cm.StateEstablished)
}
