package cm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce/cm"
)

// §5.9 DREQ: both begin at once; each answers, both end, each is told once.
func TestCrossingDREQ(t *testing.T) {
	w, client, server := pair(t)
	l := established(client, server)
	require.NoError(t, client.Disconnect(w.now, l.cid, nil))
	require.NoError(t, server.Disconnect(w.now, l.sid, nil))
	a, b := sends[cm.DREQ](client), sends[cm.DREQ](server)
	server.gets(client, a)
	client.gets(server, b)
	toClient, toServer := sends[cm.DREP](server), sends[cm.DREP](client)
	require.Equal(t, a.TID, toClient.TID)
	require.Equal(t, b.TID, toServer.TID)
	for _, h := range []*host{client, server} {
		require.True(t, h.happens(cm.EventDisconnected).Local)
	}
	client.gets(server, toClient)
	server.gets(client, toServer)
	client.untouched()
	server.untouched()
	w.wait(time.Second)
	client.happens(cm.EventTimewaitExit)
	server.happens(cm.EventTimewaitExit)
	client.empty()
	server.empty()
}

// §5.9 DREQ: TIMEWAIT resends DREP; so does a host that knows nothing any more.
func TestLostDREP(t *testing.T) {
	w, client, server := pair(t)
	l := established(client, server)
	require.NoError(t, client.Disconnect(w.now, l.cid, nil))
	dreq := sends[cm.DREQ](client)
	server.gets(client, dreq)
	drep := sends[cm.DREP](server)
	server.happens(cm.EventDisconnected)
	w.wait(100 * time.Millisecond)
	server.gets(client, dreq)
	require.Equal(t, drep, sends[cm.DREP](server))
	server.uneventful()
	w.wait(4508 * time.Millisecond)
	require.Equal(t, dreq, sends[cm.DREQ](client))
	server.happens(cm.EventTimewaitExit)
	server.empty()
	server.gets(client, dreq)
	require.Equal(t, cm.DREP{Header: dreq.Header, LocalID: dreq.RemoteID, RemoteID: dreq.LocalID}, *sends[cm.DREP](server))
	client.gets(server, drep)
	client.happens(cm.EventDisconnected)
}

// §5.9 DREQ: the QPN must be the recipient's.
func TestDREQForAnotherQPN(t *testing.T) {
	w, client, server := pair(t)
	l := established(client, server)
	require.NoError(t, client.Disconnect(w.now, l.cid, nil))
	dreq := sends[cm.DREQ](client)
	require.Equal(t, serverQPN, dreq.QPN)
	dreq.QPN++
	server.gets(client, dreq)
	server.untouched()
	server.in(l.sid, cm.StateEstablished)
}

// C6: a DREQ ends a connection whose REP is still being repeated, and its timer.
func TestDREQBeforeRTU(t *testing.T) {
	for _, delayed := range []bool{false, true} {
		w, client, server := pair(t)
		l := confirmed(client, server) // the RTU is lost
		if delayed {
			server.gets(client, &cm.MRA{LocalID: l.cid, RemoteID: l.sid, Answered: cm.ToREP, ServiceTimeout: 20})
			server.in(l.sid, cm.StateMRAREPReceived)
		}
		require.NoError(t, client.Disconnect(w.now, l.cid, nil))
		server.gets(client, sends[cm.DREQ](client))
		client.gets(server, sends[cm.DREP](server))
		server.happens(cm.EventDisconnected)
		client.happens(cm.EventDisconnected)
		require.Zero(t, server.Usage().HalfOpen)
		w.wait(time.Second)
		server.quiet()
		server.happens(cm.EventTimewaitExit)
		server.empty()
	}
}

// A DREQ that comes before our application has confirmed ends the connection, too.
func TestDREQBeforeConfirm(t *testing.T) {
	w, client, server := pair(t)
	l := replied(client, server)
	client.gets(server, l.rep)
	client.happens(cm.EventConnectResponse)
	require.NoError(t, server.Established(l.sid))
	server.happens(cm.EventEstablished)
	require.NoError(t, server.Disconnect(w.now, l.sid, nil))
	client.gets(server, sends[cm.DREQ](server))
	client.happens(cm.EventDisconnected)
	sends[cm.DREP](client)
	require.ErrorIs(t, client.Confirm(l.cid, nil), cm.ErrState)
}

// §5.9 DREP: only a DREQ asks for it.
func TestUnaskedDREP(t *testing.T) {
	_, client, server := pair(t)
	l := established(client, server)
	server.gets(client, &cm.DREP{LocalID: l.cid, RemoteID: l.sid})
	server.untouched()
	server.in(l.sid, cm.StateEstablished)
}

// C11: destroying an established connection sends one DREQ and does not wait.
func TestDestroyEstablished(t *testing.T) {
	w, client, server := pair(t)
	l := established(client, server)
	client.Destroy(w.now, l.cid)
	dreq := sends[cm.DREQ](client)
	client.uneventful()
	client.in(l.cid, cm.StateTimewait)
	client.Destroy(w.now, l.cid)
	client.untouched()
	server.gets(client, dreq)
	client.gets(server, sends[cm.DREP](server))
	client.untouched()
	w.wait(time.Minute)
	client.quiet()
	require.Equal(t, clientQPN, client.happens(cm.EventTimewaitExit).QPN)
	client.empty()
}

// Destroy while a DREQ waits for its answer stops asking.
func TestDestroyDisconnecting(t *testing.T) {
	w, client, server := pair(t)
	l := established(client, server)
	require.NoError(t, client.Disconnect(w.now, l.cid, nil))
	client.sent()
	client.Destroy(w.now, l.cid)
	client.untouched()
	w.wait(time.Minute)
	client.quiet()
	client.happens(cm.EventTimewaitExit)
	client.empty()
}

// §5.13: a REJ ends even an established connection.
func TestREJEstablished(t *testing.T) {
	_, client, server := pair(t)
	l := established(client, server)
	server.gets(client, &cm.REJ{LocalID: l.cid, RemoteID: l.sid, Rejected: cm.ToOther, Reason: cm.ReasonConsumer})
	e := server.happens(cm.EventDisconnected)
	require.Equal(t, cm.ReasonConsumer, e.Reason)
	require.Equal(t, "cm: disconnected: 10.77.0.11: consumer reject (28)", e.Err().Error())
	server.in(l.sid, cm.StateTimewait)
	server.gets(client, &cm.REJ{LocalID: l.cid, RemoteID: l.sid, Rejected: cm.ToOther, Reason: cm.ReasonConsumer})
	server.untouched()
}

// §5.4 LAP: alternate paths are not supported, and we say so.
func TestLAP(t *testing.T) {
	_, client, server := pair(t)
	l := established(client, server)
	lap := &cm.LAP{Header: cm.Header{TID: 77}, LocalID: l.cid, RemoteID: l.sid, QPN: serverQPN}
	server.gets(client, lap)
	require.Equal(t, cm.APR{Header: lap.Header, LocalID: l.sid, RemoteID: l.cid, Status: cm.APRUnsupported}, *sends[cm.APR](server))
	server.uneventful()
	lap.QPN++
	server.gets(client, lap)
	server.gets(client, &cm.APR{LocalID: l.cid, RemoteID: l.sid})
	server.untouched()
}

// Everything ends, in the order of the ids, and the peers are told.
func TestShutdown(t *testing.T) {
	w, client, server := pair(t)
	l := established(client, server)
	id, _ := client.dial(server, func(p *cm.ConnectParams) { p.QPN = 77 })
	_, err := client.Resolve(w.now, cm.ResolveParams{Peer: server.addr, Service: cm.PortSpaceUDP.Service(9)})
	require.NoError(t, err)
	client.sent()
	require.NoError(t, client.Listen(1))
	client.Shutdown(w.now)
	require.ElementsMatch(t, []string{"DREQ", "REJ"}, attributes(client.sent()))
	require.Equal(t, id, client.happens(cm.EventTimewaitExit).ID)
	require.Equal(t, cm.Usage{Connections: 1, Timewait: 1, Timers: 1}, client.Usage())
	w.wait(time.Second)
	require.Equal(t, l.cid, client.happens(cm.EventTimewaitExit).ID)
	require.Zero(t, client.Usage())
}
