package cm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce/cm"
)

// §5.9 REQ: what a duplicate does in each state. Fast ones (C12) are duplicates
// like any other.
func TestDuplicateREQ(t *testing.T) {
	w, client, server := pair(t)
	l := asked(client, server)
	for range 3 { // the application has not answered
		server.gets(client, l.req)
		require.Equal(t, cm.ToREQ, sends[cm.MRA](server).Answered)
		server.uneventful()
	}
	l.serverQP, l.rep = server.accept(l.sid)
	server.gets(client, l.req) // REP_SENT
	server.untouched()
	client.gets(server, l.rep)
	client.happens(cm.EventConnectResponse)
	require.NoError(t, client.Confirm(l.cid, nil))
	server.gets(client, sends[cm.RTU](client))
	server.happens(cm.EventEstablished)
	server.gets(client, l.req) // ESTABLISHED
	server.untouched()
	require.NoError(t, server.Disconnect(w.now, l.sid, nil))
	dreq := sends[cm.DREQ](server)
	server.gets(client, l.req) // DREQ_SENT
	server.untouched()
	client.gets(server, dreq)
	server.gets(client, sends[cm.DREP](client))
	server.happens(cm.EventDisconnected)
	server.gets(client, l.req) // TIMEWAIT
	rej := sends[cm.REJ](server)
	require.Equal(t, cm.ReasonStale, rej.Reason)
	require.Equal(t, cm.ToREQ, rej.Rejected, "C1")
	require.Equal(t, l.cid, rej.RemoteID)
	client.gets(server, rej)
	client.happens(cm.EventDisconnected)
	require.Equal(t, uint64(7), server.Stats().Duplicates)
}

// §5.9: an application that has refused is asked again by a REQ that was under way.
func TestREQAfterREJ(t *testing.T) {
	w, client, server := pair(t)
	l := asked(client, server)
	require.NoError(t, server.Reject(w.now, l.sid, cm.RejectParams{}))
	server.happens(cm.EventTimewaitExit)
	lost := sends[cm.REJ](server)
	server.gets(client, l.req)
	id := server.happens(cm.EventConnectRequest).ID
	require.NotEqual(t, l.sid, id)
	require.NoError(t, server.Reject(w.now, id, cm.RejectParams{}))
	client.gets(server, sends[cm.REJ](server))
	client.ends(cm.EventRejected)
	client.gets(server, lost)
	client.untouched()
	client.empty()
}

// §5.9 REQ: a new id on the queue pair of a live connection makes that one stale:
// the new request is refused with reason 10, the old connection gets a DREQ. The
// key is address, CA GUID and QPN (C2).
func TestStaleREQ(t *testing.T) {
	w, client, server := pair(t)
	l := established(client, server)
	rebooted := *l.req
	rebooted.LocalID, rebooted.TID = l.req.LocalID+1, 99
	server.gets(client, &rebooted)
	out := server.sent()
	require.Equal(t, []string{"DREQ", "REJ"}, attributes(out))
	require.Equal(t, l.cid, out[0].(*cm.DREQ).RemoteID)
	rej := out[1].(*cm.REJ)
	require.Equal(t, cm.ReasonStale, rej.Reason)
	require.Equal(t, cm.ToREQ, rej.Rejected)
	require.Equal(t, rebooted.LocalID, rej.RemoteID)
	require.Equal(t, uint64(99), rej.TID)
	e := server.happens(cm.EventDisconnected)
	require.Equal(t, cm.ReasonStale, e.Reason)
	require.True(t, e.Local)

	rebooted.LocalID++ // C2: tries again with a new id, and is welcome
	server.gets(client, &rebooted)
	server.happens(cm.EventConnectRequest)
	server.quiet()
	server.gets(client, &cm.DREP{LocalID: l.cid, RemoteID: l.sid})
	server.uneventful() // the end was reported
	w.wait(time.Second)
	require.Equal(t, serverQPN, server.happens(cm.EventTimewaitExit).QPN)
}

// The same queue pair number of another CA, or another address, is another queue
// pair.
func TestNotStale(t *testing.T) {
	w, client, server := pair(t)
	l := established(client, server)
	other := *l.req
	other.LocalID, other.CAGUID = 5, 77
	server.gets(client, &other)
	server.happens(cm.EventConnectRequest)
	stranger := w.host("10.77.0.13")
	stranger.dial(server)
	req := *l.req
	req.LocalID = 6
	req.Primary.LocalGID = cm.GIDOf(stranger.addr)
	ip := cm.IPHeader{Src: stranger.addr, Dst: server.addr}
	ip.Append(req.Private[:0])
	server.gets(stranger, &req)
	server.happens(cm.EventConnectRequest)
	server.in(l.sid, cm.StateEstablished)
}

// A stale connection that is not established is refused instead.
func TestStaleHalfOpen(t *testing.T) {
	_, client, server := pair(t)
	l := replied(client, server)
	again := *l.req
	again.LocalID++
	server.gets(client, &again)
	out := server.sent()
	require.Equal(t, []string{"REJ", "REJ"}, attributes(out))
	require.Equal(t, l.cid, out[0].(*cm.REJ).RemoteID)
	require.Equal(t, again.LocalID, out[1].(*cm.REJ).RemoteID)
	e := server.happens(cm.EventRejected)
	require.Equal(t, l.sid, e.ID)
	require.Equal(t, cm.ReasonStale, e.Reason)
	server.in(l.sid, cm.StateTimewait)
	require.Zero(t, server.Usage().HalfOpen)
}

// §5.9 REP: a duplicate in ESTABLISHED means that the RTU was lost.
func TestLostRTU(t *testing.T) {
	w, client, server := pair(t)
	l := confirmed(client, server)
	w.wait(4096 * time.Millisecond)
	client.gets(server, sends[cm.REP](server))
	rtu := sends[cm.RTU](client)
	require.Equal(t, l.rtu, rtu)
	client.uneventful()
	server.gets(client, rtu)
	server.happens(cm.EventEstablished)
	require.Zero(t, server.Deadline())
	server.gets(client, rtu) // RTU in any other state: ignored
	server.untouched()
}

// §5.12: without an RTU the first packet on the queue pair does it.
func TestEstablishedByFirstPacket(t *testing.T) {
	w, client, server := pair(t)
	l := confirmed(client, server)
	require.Equal(t, 1, server.Usage().HalfOpen)
	require.NoError(t, server.Established(l.sid))
	require.Nil(t, server.happens(cm.EventEstablished).Private)
	server.in(l.sid, cm.StateEstablished)
	require.Zero(t, server.Usage().HalfOpen)
	require.NoError(t, server.Established(l.sid))
	server.gets(client, l.rtu) // too late
	server.untouched()
	w.wait(time.Hour)
	server.untouched()
	server.Destroy(w.now, l.sid)
	sends[cm.DREQ](server)
	require.NoError(t, server.Established(l.sid)) // later still
	server.untouched()
}

// §5.9 REP: one for an id that is unknown is ignored.
func TestUnknownREP(t *testing.T) {
	_, client, server := pair(t)
	l := replied(client, server)
	l.rep.RemoteID++
	client.gets(server, l.rep)
	client.untouched()
	client.in(l.cid, cm.StateREQSent)
}

// A REP from a connection that the server made of a late duplicate is refused, so
// that the server need not wait for its timer.
func TestGhostREP(t *testing.T) {
	w, client, server := pair(t)
	l := established(client, server)
	ghost := *l.rep
	ghost.LocalID, ghost.QPN = l.rep.LocalID+1, 99
	client.gets(server, &ghost)
	rej := sends[cm.REJ](client)
	require.Equal(t, cm.ToREP, rej.Rejected)
	require.Equal(t, cm.ReasonStale, rej.Reason)
	require.Equal(t, ghost.LocalID, rej.RemoteID)
	require.Equal(t, l.cid, rej.LocalID)
	client.uneventful()
	client.in(l.cid, cm.StateEstablished)
	client.Destroy(w.now, l.cid)
	sends[cm.DREQ](client)
	client.gets(server, l.rep) // TIMEWAIT: the DREQ was lost, too
	require.Equal(t, l.sid, sends[cm.REJ](client).RemoteID)
}

// §5.9 REP: the stale check of an active connection.
func TestStaleREP(t *testing.T) {
	_, client, server := pair(t)
	l := established(client, server)
	other, req := client.dial(server, func(p *cm.ConnectParams) { p.QPN = 9 })
	client.gets(server, &cm.REP{
		Header: cm.Header{TID: req.TID}, LocalID: 1234, RemoteID: other, QPN: serverQPN, CAGUID: server.guid,
	})
	out := client.sent()
	require.Equal(t, []string{"DREQ", "REJ"}, attributes(out))
	require.Equal(t, cm.ToREP, out[1].(*cm.REJ).Rejected)
	require.Equal(t, cm.ReasonStale, out[1].(*cm.REJ).Reason)
	all := client.TakeEvents(nil)
	require.Equal(t, []string{"DISCONNECTED", "REJECTED"}, kinds(all))
	require.Equal(t, l.cid, all[0].ID)
	require.Equal(t, other, all[1].ID)
	require.Equal(t, "cm: connection rejected: 10.77.0.12, by this side: stale connection (10)", all[1].Err().Error())
	client.in(other, cm.StateTimewait)
	client.in(l.cid, cm.StateDREQSent)
}
