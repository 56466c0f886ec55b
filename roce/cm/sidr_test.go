package cm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce/cm"
)

var udp = cm.PortSpaceUDP.Service(port)

func (h *host) resolve(to *host) (cm.CommID, *cm.SIDRREQ) {
	h.w.t.Helper()
	id, err := h.Resolve(h.w.now, cm.ResolveParams{Peer: to.addr, Service: udp, SrcPort: 40000, Private: []byte("who?")})
	require.NoError(h.w.t, err)
	return id, sends[cm.SIDRREQ](h)
}

// §5.11: request, answer, and nothing more.
func TestSIDR(t *testing.T) {
	w, client, server := pair(t)
	require.NoError(t, server.Listen(udp))
	id, req := client.resolve(server)
	require.Equal(t, uint16(0xFFFF), req.PKey)
	require.Equal(t, id, req.RequestID)
	server.gets(client, req)
	e := server.happens(cm.EventSIDRRequest)
	server.quiet()
	require.Equal(t, "who?", string(e.Private[:4]))
	require.Len(t, e.Private, 180)
	require.Equal(t, "10.77.0.11:40000", e.Request.Src.String())
	require.Equal(t, udp, e.Request.Service)

	server.gets(client, req) // duplicates while it is pending are dropped
	server.untouched()
	require.NoError(t, server.AnswerSIDR(w.now, e.ID, cm.SIDRAnswer{QPN: 0x33, Private: []byte("me")}))
	rep := sends[cm.SIDRREP](server)
	want := cm.SIDRREP{Header: req.Header, RequestID: id, QPN: 0x33, QKey: 0x01234567, Service: udp}
	copy(want.Private[:], "me")
	require.Equal(t, want, *rep)
	server.gets(client, req) // the answer is given again
	require.Equal(t, rep, sends[cm.SIDRREP](server))
	server.uneventful()
	require.ErrorIs(t, server.AnswerSIDR(w.now, e.ID, cm.SIDRAnswer{QPN: 5}), cm.ErrUnknown)

	client.gets(server, rep)
	r := client.happens(cm.EventSIDRReply)
	require.Equal(t, id, r.ID)
	require.Equal(t, cm.SIDROK, r.Status)
	require.EqualValues(t, 0x33, r.QPN)
	require.Equal(t, uint32(cm.DefaultQKey), r.QKey)
	require.Equal(t, "me", string(r.Private[:2]))
	require.NoError(t, r.Err())
	client.empty()
	client.gets(server, rep)
	client.untouched()

	w.wait(65536 * time.Millisecond)
	server.untouched()
	server.empty()
}

// §5.8: 15 resends after 4096 ms each.
func TestSIDRTimer(t *testing.T) {
	w, client, server := pair(t)
	id, req := client.resolve(server)
	var at []time.Duration
	start := w.now
	for len(client.TakeEvents(nil)) == 0 && w.now.Sub(start) < time.Hour {
		w.wait(4096 * time.Millisecond)
		for _, m := range client.sent() {
			require.Equal(t, req, m)
			at = append(at, w.now.Sub(start))
		}
	}
	require.Equal(t, every(4096*time.Millisecond, 15), at)
	require.Equal(t, 16*4096*time.Millisecond, w.now.Sub(start))
	client.empty()
	client.Destroy(w.now, id)
	client.untouched()
}

// §5.4 SIDR_REP: refusals, by nobody listening, by the application, by a request
// that makes no sense.
func TestSIDRRefused(t *testing.T) {
	w, client, server := pair(t)
	_, req := client.resolve(server)
	server.gets(client, req)
	rep := sends[cm.SIDRREP](server)
	require.Equal(t, cm.SIDRUnsupported, rep.Status)
	require.Equal(t, udp, rep.Service)
	require.Equal(t, req.TID, rep.TID)
	client.gets(server, rep)
	e := client.happens(cm.EventSIDRReply)
	require.ErrorIs(t, e.Err(), cm.ErrRejected)
	require.Equal(t, "cm: connection rejected: 10.77.0.12: service not supported (1)", e.Err().Error())

	require.NoError(t, server.Listen(udp))
	id, req := client.resolve(server)
	server.gets(client, req)
	ask := server.happens(cm.EventSIDRRequest)
	require.NoError(t, server.AnswerSIDR(w.now, ask.ID, cm.SIDRAnswer{Status: cm.SIDRRejected}))
	client.gets(server, sends[cm.SIDRREP](server))
	e = client.happens(cm.EventSIDRReply)
	require.Equal(t, id, e.ID)
	require.Equal(t, cm.SIDRRejected, e.Status)
	require.Zero(t, e.QPN)

	_, req = client.resolve(server)
	req.Private[0] = 1
	server.gets(client, req)
	require.Equal(t, cm.SIDRRejected, sends[cm.SIDRREP](server).Status)

	req.Service = service // TCP: no datagrams
	server.gets(client, req)
	require.Equal(t, cm.SIDRUnsupported, sends[cm.SIDRREP](server).Status)
	server.uneventful()
}

// An answer counts only if it comes from where the question went, names it and
// makes sense.
func TestSIDRSpoofed(t *testing.T) {
	w, client, server := pair(t)
	stranger := w.host("10.77.0.66")
	id, req := client.resolve(server)
	good := cm.SIDRREP{Header: req.Header, RequestID: id, QPN: 5, QKey: 1, Service: udp}
	for _, change := range []func(m *cm.SIDRREP){
		func(m *cm.SIDRREP) { m.RequestID++ },
		func(m *cm.SIDRREP) { m.Service++ },
		func(m *cm.SIDRREP) { m.QPN = 1 },
	} {
		m := good
		change(&m)
		client.gets(server, &m)
	}
	client.gets(stranger, &good)
	client.untouched()
	client.gets(server, &good)
	client.happens(cm.EventSIDRReply)
}

// An application that never answers, or a handle that is destroyed, leaves nothing.
func TestSIDRUnanswered(t *testing.T) {
	w, client, server := pair(t)
	require.NoError(t, server.Listen(udp))
	for range 2 {
		_, req := client.resolve(server)
		server.gets(client, req)
	}
	all := server.TakeEvents(nil)
	require.Len(t, all, 2)
	server.Destroy(w.now, all[0].ID)
	require.Equal(t, 1, server.Usage().SIDR)
	w.wait(time.Minute + 10*time.Second)
	server.empty()
	require.ErrorIs(t, server.AnswerSIDR(w.now, all[1].ID, cm.SIDRAnswer{QPN: 5}), cm.ErrUnknown)
}
