package cm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce/cm"
)

// §5.9: nobody listens: reason 8, no ARI, local id 0.
func TestNoListener(t *testing.T) {
	w, client, server := pair(t)
	server.Unlisten(service)
	_, req := client.dial(server)
	server.gets(client, req)
	require.Equal(t, cm.REJ{
		Header: req.Header, RemoteID: req.LocalID, Rejected: cm.ToREQ, Reason: cm.ReasonServiceID,
	}, *sends[cm.REJ](server))
	server.uneventful()
	server.empty()
	require.NoError(t, server.Listen(service))
	w.wait(time.Second)
	server.gets(client, req)
	server.happens(cm.EventConnectRequest)
}

// §5.10, C1: a REJ says which message it rejects by the state in which it was
// decided on, and what ids it carries; and the other side sees it.
func TestRejectedMessage(t *testing.T) {
	p := cm.RejectParams{Private: []byte("sorry"), Info: []byte{1, 2}}
	for name, c := range map[string]struct {
		prepare  func(w *world, l *link)
		reject   func(l *link) (*host, cm.CommID)
		rejected cm.Answered
		withID   bool
		held     bool
	}{
		"REQ_RCVD": {
			func(*world, *link) {},
			func(l *link) (*host, cm.CommID) { return l.server, l.sid }, cm.ToREQ, false, false,
		},
		"MRA_REQ_SENT": {
			func(_ *world, l *link) { l.server.gets(l.client, l.req); l.server.sent() },
			func(l *link) (*host, cm.CommID) { return l.server, l.sid }, cm.ToREQ, true, false,
		},
		"REP_SENT": {
			func(_ *world, l *link) { l.server.accept(l.sid) },
			func(l *link) (*host, cm.CommID) { return l.server, l.sid }, cm.ToOther, true, true,
		},
		"REP_RCVD": {
			func(_ *world, l *link) {
				_, rep := l.server.accept(l.sid)
				l.client.gets(l.server, rep)
				l.client.happens(cm.EventConnectResponse)
			},
			func(l *link) (*host, cm.CommID) { return l.client, l.cid }, cm.ToREP, true, true,
		},
	} {
		for _, how := range []string{"Reject", "Destroy"} {
			t.Run(name+" "+how, func(t *testing.T) {
				w, client, server := pair(t)
				l := asked(client, server)
				c.prepare(w, l)
				h, id := c.reject(l)
				peer, peerID := server, l.sid
				if h == server {
					peer, peerID = client, l.cid
				}
				if how == "Reject" {
					require.NoError(t, h.Reject(w.now, id, p))
				} else {
					h.Destroy(w.now, id)
				}
				rej := sends[cm.REJ](h)
				require.Equal(t, c.rejected, rej.Rejected)
				require.Equal(t, cm.ReasonConsumer, rej.Reason)
				require.Equal(t, peerID, rej.RemoteID)
				require.Equal(t, l.req.TID, rej.TID)
				if c.withID {
					require.Equal(t, id, rej.LocalID)
				} else {
					require.Zero(t, rej.LocalID)
				}
				require.Equal(t, c.held, h.Usage().Timewait == 1)
				peer.gets(h, rej)
				e := peer.TakeEvents(nil)[0]
				require.Equal(t, cm.EventRejected, e.Kind)
				require.Equal(t, cm.ReasonConsumer, e.Reason)
				require.ErrorIs(t, e.Err(), cm.ErrRejected)
				if how == "Reject" {
					require.Equal(t, "sorry", string(e.Private[:5]))
					require.Equal(t, []byte{1, 2}, e.Info)
				}
				w.wait(time.Minute)
				require.Equal(t, cm.EventTimewaitExit, h.happens(cm.EventTimewaitExit).Kind)
				h.quiet()
				peer.quiet()
				client.empty()
				server.empty()
			})
		}
	}
}

// C1: a peer with the bug says "other" to a REQ; its REJ is seen all the same.
func TestREJOfREQSayingOther(t *testing.T) {
	_, client, server := pair(t)
	id, _ := client.dial(server)
	client.gets(server, &cm.REJ{RemoteID: id, Rejected: cm.ToOther, Reason: cm.ReasonConsumer})
	client.ends(cm.EventRejected)
	client.empty()
}

// A REJ of a late duplicate REQ, from a server that has forgotten, does not touch
// a connection that has an answer.
func TestREJOfLateREQ(t *testing.T) {
	_, client, server := pair(t)
	l := replied(client, server)
	late := &cm.REJ{RemoteID: l.cid, Rejected: cm.ToREQ, Reason: cm.ReasonServiceID}
	client.gets(server, l.rep)
	client.happens(cm.EventConnectResponse)
	client.gets(server, late)
	client.untouched()
	require.NoError(t, client.Confirm(l.cid, nil))
	client.sent()
	client.gets(server, late)
	client.untouched()
	client.in(l.cid, cm.StateEstablished)
}

// C2: reason 10 keeps the QPN of a client that is refused out of use for a while.
func TestREJStaleHoldsQPN(t *testing.T) {
	w, client, server := pair(t)
	id, _ := client.dial(server)
	client.gets(server, &cm.REJ{RemoteID: id, Reason: cm.ReasonStale})
	require.Equal(t, cm.ReasonStale, client.happens(cm.EventRejected).Reason)
	client.in(id, cm.StateTimewait)
	w.wait(time.Second)
	require.Equal(t, clientQPN, client.happens(cm.EventTimewaitExit).QPN)
	client.empty()
}

// §5.8, C3: a client that gives up never learned the server's id; the CA GUID in
// its REJ finds the connection.
func TestREJTimeoutByGUID(t *testing.T) {
	for name, prepare := range map[string]func(*link){
		"REQ_RCVD": func(*link) {},
		"REP_SENT": func(l *link) { l.server.accept(l.sid) },
	} {
		t.Run(name, func(t *testing.T) {
			w, client, server := pair(t)
			l := asked(client, server)
			prepare(l)
			client.Destroy(w.now, l.cid)
			require.Equal(t, clientQPN, client.happens(cm.EventTimewaitExit).QPN)
			client.empty()
			rej := sends[cm.REJ](client)
			require.Zero(t, rej.RemoteID)
			wrong := *rej
			wrong.ARI[7]++
			server.gets(client, &wrong)
			server.uneventful()
			server.gets(client, rej)
			e := server.TakeEvents(nil)[0]
			require.Equal(t, cm.EventRejected, e.Kind)
			require.Equal(t, cm.ReasonTimeout, e.Reason)
			w.wait(time.Minute)
			server.empty()
		})
	}
}

// A server that gives up tells the client, whichever state it is in.
func TestREJTimeoutOfServer(t *testing.T) {
	w, client, server := pair(t)
	l := confirmed(client, server)
	w.hosts = []*host{server}
	w.wait(2 * time.Minute)
	server.happensLast(cm.EventUnreachable)
	all := server.sent()
	rej := all[len(all)-1].(*cm.REJ)
	require.Equal(t, cm.ReasonTimeout, rej.Reason)
	client.gets(server, rej)
	e := client.happens(cm.EventDisconnected)
	require.Equal(t, cm.ReasonTimeout, e.Reason)
	require.False(t, e.Local)
	client.in(l.cid, cm.StateTimewait)
}

// happensLast takes the end of a connection and, if its time is over, what follows.
func (h *host) happensLast(kind cm.EventKind) {
	h.w.t.Helper()
	require.Equal(h.w.t, []string{kind.String(), "TIMEWAIT_EXIT"}, kinds(h.TakeEvents(nil)))
}

// §5.4, §5.5: what is refused without asking the application.
func TestBadREQ(t *testing.T) {
	gid := cm.GIDOf(addr("10.77.0.11"))
	mine := cm.GIDOf(addr("10.77.0.12"))
	header := func(h cm.IPHeader) func(*cm.REQ) { return func(m *cm.REQ) { h.Append(m.Private[:0]) } }
	for name, c := range map[string]struct {
		change func(*cm.REQ)
		reason cm.Reason
		info   []byte
	}{
		"RD":               {func(m *cm.REQ) { m.Transport = cm.RD }, cm.ReasonTransport, []byte{}},
		"XRC":              {func(m *cm.REQ) { m.Transport = cm.Extended }, cm.ReasonTransport, []byte{}},
		"QPN 0":            {func(m *cm.REQ) { m.QPN = 0 }, cm.ReasonUnsupported, []byte{}},
		"QPN 1":            {func(m *cm.REQ) { m.QPN = 1 }, cm.ReasonUnsupported, []byte{}},
		"multicast QPN":    {func(m *cm.REQ) { m.QPN = 0xFFFFFF }, cm.ReasonUnsupported, []byte{}},
		"someone's GID":    {func(m *cm.REQ) { m.Primary.LocalGID[15]++ }, cm.ReasonGID, gid[:]},
		"for another GID":  {func(m *cm.REQ) { m.Primary.RemoteGID[15]++ }, cm.ReasonGID, mine[:]},
		"MTU 0":            {func(m *cm.REQ) { m.MTU = 0 }, cm.ReasonMTU, []byte{3}},
		"MTU 6":            {func(m *cm.REQ) { m.MTU = 6 }, cm.ReasonMTU, []byte{3}},
		"MTU above ours":   {func(m *cm.REQ) { m.MTU = 4 }, cm.ReasonMTU, []byte{3}},
		"CMA version":      {func(m *cm.REQ) { m.Private[0] = 1 }, cm.ReasonUnsupported, []byte{}},
		"IP version":       {func(m *cm.REQ) { m.Private[1] = 0x50 }, cm.ReasonUnsupported, []byte{}},
		"source multicast": {header(cm.IPHeader{Src: addr("224.0.0.1"), Dst: addr("10.77.0.12")}), cm.ReasonGID, gid[:]},
		"source zero":      {header(cm.IPHeader{Src: addr("0.0.0.0"), Dst: addr("10.77.0.12")}), cm.ReasonGID, gid[:]},
		"source loopback":  {header(cm.IPHeader{Src: addr("127.0.0.1"), Dst: addr("10.77.0.12")}), cm.ReasonGID, gid[:]},
		"source another":   {header(cm.IPHeader{Src: addr("10.77.0.13"), Dst: addr("10.77.0.12")}), cm.ReasonGID, gid[:]},
		"not for us":       {header(cm.IPHeader{Src: addr("10.77.0.11"), Dst: addr("10.77.0.13")}), cm.ReasonServiceID, []byte{}},
	} {
		t.Run(name, func(t *testing.T) {
			_, client, server := pair(t)
			id, req := client.dial(server)
			c.change(req)
			server.gets(client, req)
			rej := sends[cm.REJ](server)
			require.Equal(t, c.reason, rej.Reason)
			require.Equal(t, cm.ToREQ, rej.Rejected)
			require.Equal(t, c.info, rej.Info())
			server.uneventful()
			server.empty()
			client.gets(server, rej)
			e := client.ends(cm.EventRejected)
			require.Equal(t, id, e.ID)
			require.Equal(t, c.reason, e.Reason)
		})
	}
}

// §5.5: a service of datagrams takes no connections.
func TestREQForDatagramService(t *testing.T) {
	_, client, server := pair(t)
	udp := cm.PortSpaceUDP.Service(1)
	require.NoError(t, server.Listen(udp))
	_, req := client.dial(server)
	req.Service = udp
	server.gets(client, req)
	require.Equal(t, cm.ReasonServiceID, sends[cm.REJ](server).Reason)
}

// An alternate path is not taken; REP says so.
func TestAlternatePath(t *testing.T) {
	_, client, server := pair(t)
	_, req := client.dial(server)
	req.Alternate = req.Primary
	require.True(t, req.HasAlternate())
	server.gets(client, req)
	_, rep := server.accept(server.happens(cm.EventConnectRequest).ID)
	require.Equal(t, cm.FailoverNotSupported, rep.Failover)
}
