package cm_test

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/dump"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
)

const captures = "../../testdata/pcaps/"

// gsi is one packet to queue pair 1 of a recording.
type gsi struct {
	n        int // in the file
	src, dst netip.Addr
	mad      []byte
}

// recording returns the packets to queue pair 1 of a capture.
func recording(t testing.TB, file string) (all []gsi) {
	t.Helper()
	in, err := os.Open(file)
	require.NoError(t, err)
	defer in.Close()
	r, err := dump.NewReader(in)
	require.NoError(t, err)
	var p dump.Packet
	for n := 1; ; n++ {
		err := r.Next(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		var f roce.Frame
		var pkt roce.Packet
		if roce.DecodeFrame(p.Link, p.Data, &f) != nil || pkt.Decode(f.Payload) != nil || pkt.DestQP != roce.QPNGSI {
			continue
		}
		all = append(all, gsi{n, f.Src, f.Dst, append([]byte(nil), pkt.Payload...)})
	}
}

// random is a small seeded source, the same on every platform.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9E3779B97F4A7C15 // splitmix64
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// below returns a number in [0, n).
func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

// world is a virtual clock and the hosts that live by it.
type world struct {
	t     testing.TB
	now   mono.Time
	hosts []*host
}

// host is an agent with an address, whose messages the test carries.
type host struct {
	*cm.Agent
	w    *world
	addr netip.Addr
	guid uint64
}

func newWorld(t testing.TB) *world { return &world{t: t, now: mono.Time(time.Hour)} }

// host adds a host with the default configuration, changed by the given functions.
func (w *world) host(addr string, change ...func(*cm.Config)) *host {
	w.t.Helper()
	rnd := random(len(w.hosts) + 1)
	cfg := cm.Config{Addr: netip.MustParseAddr(addr), CAGUID: 0x0200_0000_0000_0001 + uint64(len(w.hosts)), Rand: rnd.next}
	for _, f := range change {
		f(&cfg)
	}
	a, err := cm.NewAgent(cfg)
	require.NoError(w.t, err)
	h := &host{a, w, cfg.Addr, cfg.CAGUID}
	w.hosts = append(w.hosts, h)
	return h
}

// wait lets time pass; timers go off when they are due.
func (w *world) wait(d time.Duration) {
	until := w.now.Add(d)
	for {
		var next mono.Time
		for _, h := range w.hosts {
			next = mono.Earliest(next, h.Deadline())
		}
		if next == 0 || until.Before(next) {
			w.now = until
			return
		}
		w.now = next
		for _, h := range w.hosts {
			h.Expire(w.now)
		}
	}
}

// gets delivers a message from an address.
func (h *host) getsFrom(src netip.Addr, m cm.Message) { h.Handle(h.w.now, src, m.Append(nil)) }

// gets delivers a message from another host.
func (h *host) gets(from *host, m cm.Message) { h.getsFrom(from.addr, m) }

// sent takes what the host has sent.
func (h *host) sent() (all []cm.Message) {
	for _, s := range h.TakeSends(nil) {
		m, err := cm.Decode(s.MAD[:])
		require.NoError(h.w.t, err)
		all = append(all, m)
	}
	return all
}

// sends takes the one message that the host has sent, which must be an M.
func sends[M any](h *host) *M {
	h.w.t.Helper()
	all := h.sent()
	require.Len(h.w.t, all, 1, "messages sent: %v", attributes(all))
	m, ok := any(all[0]).(*M)
	require.True(h.w.t, ok, "sent %v", all[0].Attribute())
	return m
}

func attributes(all []cm.Message) (s []string) {
	for _, m := range all {
		s = append(s, m.Attribute().String())
	}
	return s
}

// quiet asserts that the host has sent nothing.
func (h *host) quiet() {
	h.w.t.Helper()
	require.Empty(h.w.t, attributes(h.sent()), "messages sent")
}

// happens takes the one event of the host, which must be of a kind.
func (h *host) happens(kind cm.EventKind) cm.Event {
	h.w.t.Helper()
	all := h.TakeEvents(nil)
	require.Len(h.w.t, all, 1, "events: %v", kinds(all))
	require.Equal(h.w.t, kind, all[0].Kind, "%v", all[0].Kind)
	return all[0]
}

// ends takes two events: how a connection ended, and that its id is free.
func (h *host) ends(kind cm.EventKind) cm.Event {
	h.w.t.Helper()
	all := h.TakeEvents(nil)
	require.Equal(h.w.t, []string{kind.String(), cm.EventTimewaitExit.String()}, kinds(all))
	require.Equal(h.w.t, all[0].ID, all[1].ID)
	return all[0]
}

// uneventful asserts that nothing has happened.
func (h *host) uneventful() {
	h.w.t.Helper()
	require.Empty(h.w.t, kinds(h.TakeEvents(nil)), "events")
}

// untouched asserts that the host has neither sent nor noticed anything.
func (h *host) untouched() {
	h.w.t.Helper()
	h.quiet()
	h.uneventful()
}

func kinds(all []cm.Event) (s []string) {
	for _, e := range all {
		s = append(s, e.Kind.String())
	}
	return s
}

// in asserts a connection's state.
func (h *host) in(id cm.CommID, want cm.State) {
	h.w.t.Helper()
	s, ok := h.State(id)
	require.True(h.w.t, ok, "connection %v is gone, want %v", id, want)
	require.Equal(h.w.t, want, s, "%v", s)
}

// empty asserts that the host holds nothing.
func (h *host) empty() {
	h.w.t.Helper()
	u := h.Usage()
	u.Listeners = 0
	require.Zero(h.w.t, u)
}

const port = 7174

var service = cm.PortSpaceTCP.Service(port)

// pair is a client and a server that listens.
func pair(t testing.TB, change ...func(*cm.Config)) (w *world, client, server *host) {
	w = newWorld(t)
	client, server = w.host("10.77.0.11", change...), w.host("10.77.0.12", change...)
	require.NoError(t, server.Listen(service))
	return w, client, server
}

const (
	clientQPN roce.QPN = 0x51
	serverQPN roce.QPN = 0x58
)

// dial lets the client ask for a connection.
func (h *host) dial(to *host, change ...func(*cm.ConnectParams)) (cm.CommID, *cm.REQ) {
	h.w.t.Helper()
	p := cm.ConnectParams{Peer: to.addr, Service: service, QPN: clientQPN}
	for _, f := range change {
		f(&p)
	}
	id, err := h.Connect(h.w.now, p)
	require.NoError(h.w.t, err)
	return id, sends[cm.REQ](h)
}

// accept lets the server's application accept, with what it wants changed.
func (h *host) accept(id cm.CommID, change ...func(*cm.AcceptParams)) (cm.QPParams, *cm.REP) {
	h.w.t.Helper()
	p := cm.AcceptParams{QPN: serverQPN}
	for _, f := range change {
		f(&p)
	}
	qp, err := h.Prepare(id, p)
	require.NoError(h.w.t, err)
	h.quiet()
	require.NoError(h.w.t, h.Accept(h.w.now, id))
	return qp, sends[cm.REP](h)
}

// link is a connection in the making.
type link struct {
	client, server     *host
	cid, sid           cm.CommID
	req                *cm.REQ
	rep                *cm.REP
	rtu                *cm.RTU
	clientQP, serverQP cm.QPParams
}

// asked runs a handshake until the server's application knows of it.
func asked(client, server *host, change ...func(*cm.ConnectParams)) *link {
	l := &link{client: client, server: server}
	l.cid, l.req = client.dial(server, change...)
	server.gets(client, l.req)
	l.sid = server.happens(cm.EventConnectRequest).ID
	server.quiet()
	return l
}

// replied runs a handshake until the server's REP.
func replied(client, server *host, change ...func(*cm.ConnectParams)) *link {
	l := asked(client, server, change...)
	l.serverQP, l.rep = server.accept(l.sid)
	return l
}

// confirmed runs it until the client is established.
func confirmed(client, server *host, change ...func(*cm.ConnectParams)) *link {
	l := replied(client, server, change...)
	client.gets(server, l.rep)
	l.clientQP = client.happens(cm.EventConnectResponse).QP
	require.NoError(client.w.t, client.Confirm(l.cid, nil))
	l.rtu = sends[cm.RTU](client)
	return l
}

// established runs it to its end.
func established(client, server *host, change ...func(*cm.ConnectParams)) *link {
	l := confirmed(client, server, change...)
	server.gets(client, l.rtu)
	server.happens(cm.EventEstablished)
	return l
}
