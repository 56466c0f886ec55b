package cm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce/cm"
)

// resends returns when a host repeats a message, as times since the world's now,
// until it stops; the repetitions must be like the original.
func resends(h *host, want cm.Message) (at []time.Duration) {
	start := h.w.now
	for d := h.Deadline(); d != 0; d = h.Deadline() {
		h.w.wait(d.Sub(h.w.now))
		all := h.sent()
		if len(all) != 1 || all[0].Attribute() != want.Attribute() {
			h.w.t.Logf("then %v", attributes(all))
			return at
		}
		require.Equal(h.w.t, want, all[0])
		at = append(at, h.w.now.Sub(start))
	}
	return at
}

func every(d time.Duration, n int) (at []time.Duration) {
	for i := range n {
		at = append(at, d*time.Duration(i+1))
	}
	return at
}

// §5.8: REQ is resent after two lifetimes and the response timeout, max_cm_retries
// times; then the peer is unreachable, and is told so with reason 4 and our CA GUID.
func TestREQTimer(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*cm.ConnectParams)
		interval time.Duration
		n        int
	}{
		"default":    {func(*cm.ConnectParams) {}, 4608 * time.Millisecond, 15},
		"6.1":        {func(p *cm.ConnectParams) { p.ACKTimeout = 19 }, 6144 * time.Millisecond, 15},
		"MLNX_OFED":  {func(p *cm.ConnectParams) { p.ResponseTimeout = 22 }, 16896 * time.Millisecond, 15},
		"two tries":  {func(p *cm.ConnectParams) { p.CMRetries = 1 }, 4608 * time.Millisecond, 1},
		"no retries": {func(p *cm.ConnectParams) { p.CMRetries = cm.None }, 4608 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			client := w.host("10.0.0.1")
			p := cm.ConnectParams{Peer: addr("10.0.0.2"), Service: service, QPN: 7}
			c.change(&p)
			id, err := client.Connect(w.now, p)
			require.NoError(t, err)
			req := sends[cm.REQ](client)
			start := w.now
			for i := range c.n {
				w.wait(c.interval - 1)
				client.quiet()
				w.wait(1)
				require.Equal(t, req, sends[cm.REQ](client), "resend %d", i)
			}
			client.uneventful()
			w.wait(c.interval)
			rej := sends[cm.REJ](client)
			require.Equal(t, cm.ReasonTimeout, rej.Reason)
			require.Equal(t, id, rej.LocalID)
			require.Zero(t, rej.RemoteID)
			require.Equal(t, cm.ToOther, rej.Rejected)
			require.Equal(t, []byte{2, 0, 0, 0, 0, 0, 0, 1}, rej.Info())
			end := client.ends(cm.EventUnreachable)
			require.ErrorIs(t, end.Err(), cm.ErrUnreachable)
			require.Equal(t, c.interval*time.Duration(c.n+1), w.now.Sub(start))
			client.empty()
		})
	}
}

// §5.8: REP is resent by the REQ's local response timeout and max_cm_retries. The
// end is reported on both sides (C3), and the QPN is held, as the peer knows it.
func TestREPTimer(t *testing.T) {
	w, client, server := pair(t)
	l := replied(client, server, func(p *cm.ConnectParams) { p.ResponseTimeout, p.CMRetries = 18, 4 })
	server.quiet()
	require.Equal(t, every(1024*time.Millisecond, 4), repeated(server, l.rep))
	server.happens(cm.EventUnreachable)
	server.in(l.sid, cm.StateTimewait)
	w.wait(time.Minute)
	require.Equal(t, serverQPN, server.happens(cm.EventTimewaitExit).QPN)
	server.empty()
}

// repeated is resends of one host alone, without letting others' timers go off.
func repeated(h *host, want cm.Message) []time.Duration {
	hosts := h.w.hosts
	h.w.hosts = []*host{h}
	defer func() { h.w.hosts = hosts }()
	return resends(h, want)
}

// §5.8: the caps on what a peer may dictate, either way.
func TestREPTimerIsCapped(t *testing.T) {
	for exp, want := range map[uint8]time.Duration{0: 16, 12: 16, 13: 32, 22: 16384, 31: 16384} {
		w, client, server := pair(t)
		_, req := client.dial(server)
		req.LocalTimeout, req.MaxCMRetries = exp, 1
		server.gets(client, req)
		id := server.happens(cm.EventConnectRequest).ID
		start := w.now
		server.accept(id)
		require.Equal(t, want*time.Millisecond, server.Deadline().Sub(start), "%d", exp)
	}
}

// §5.8: DREQ is resent like the connection's first message, then the connection
// is over without an answer.
func TestDREQTimer(t *testing.T) {
	for name, side := range map[string]func(*link) (*host, cm.CommID, time.Duration){
		"active":  func(l *link) (*host, cm.CommID, time.Duration) { return l.client, l.cid, 4608 * time.Millisecond },
		"passive": func(l *link) (*host, cm.CommID, time.Duration) { return l.server, l.sid, 4096 * time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			w, client, server := pair(t)
			h, id, interval := side(established(client, server))
			require.NoError(t, h.Disconnect(w.now, id, nil))
			require.Equal(t, every(interval, 15), resends(h, sends[cm.DREQ](h)))
			e := h.happens(cm.EventDisconnected)
			require.Equal(t, cm.ReasonTimeout, e.Reason)
			require.True(t, e.Local)
			w.wait(time.Minute)
			h.happens(cm.EventTimewaitExit)
			h.empty()
		})
	}
}

// C12: with FirstRetry the first resends come soon, doubling up to the interval of
// the fields.
func TestFirstRetry(t *testing.T) {
	fast := func(c *cm.Config) { c.FirstRetry = time.Second }
	_, client, server := pair(t, fast)
	l := replied(client, server, func(p *cm.ConnectParams) { p.CMRetries = 4 })
	ms := func(at ...time.Duration) []time.Duration {
		for i := range at {
			at[i] *= time.Millisecond
		}
		return at
	}
	require.Equal(t, ms(1000, 3000, 7000, 11096), repeated(server, l.rep))

	w := newWorld(t)
	client = w.host("10.0.0.1", fast)
	_, err := client.Resolve(w.now, cm.ResolveParams{Peer: addr("10.0.0.9"), Service: cm.PortSpaceUDP.Service(1)})
	require.NoError(t, err)
	require.Equal(t, ms(1000, 3000, 7000, 11096, 15192), repeated(client, sends[cm.SIDRREQ](client))[:5])
}

// §5.13: TIMEWAIT lasts as long as the path's timeout says, and holds id and QPN.
func TestTimewait(t *testing.T) {
	for exp, want := range map[uint8]time.Duration{17: 512 * time.Millisecond, 18: 1024 * time.Millisecond, 19: 2048 * time.Millisecond} {
		w, client, server := pair(t)
		l := established(client, server, func(p *cm.ConnectParams) { p.ACKTimeout = exp })
		require.NoError(t, client.Disconnect(w.now, l.cid, nil))
		server.gets(client, sends[cm.DREQ](client))
		client.gets(server, sends[cm.DREP](server))
		client.happens(cm.EventDisconnected)
		server.happens(cm.EventDisconnected)
		require.Equal(t, 1, client.Usage().Timewait)
		w.wait(want - 1)
		client.untouched()
		server.untouched()
		client.in(l.cid, cm.StateTimewait)
		server.in(l.sid, cm.StateTimewait)
		w.wait(1)
		require.Equal(t, clientQPN, client.happens(cm.EventTimewaitExit).QPN)
		require.Equal(t, serverQPN, server.happens(cm.EventTimewaitExit).QPN)
		client.empty()
		server.empty()
	}
}

// A peer cannot keep a QPN in TIMEWAIT for hours.
func TestTimewaitIsCapped(t *testing.T) {
	w, client, server := pair(t)
	_, req := client.dial(server)
	req.Primary.ACKTimeout = 31
	server.gets(client, req)
	id := server.happens(cm.EventConnectRequest).ID
	server.accept(id)
	require.NoError(t, server.Reject(w.now, id, cm.RejectParams{}))
	require.Equal(t, 16384*time.Millisecond, server.Deadline().Sub(w.now))
}

// §5.8: an MRA to a REQ replaces its timeout; then the retries go on.
func TestMRAToREQ(t *testing.T) {
	w, client, server := pair(t)
	l := asked(client, server)
	w.wait(4608 * time.Millisecond)
	server.gets(client, sends[cm.REQ](client))
	mra := sends[cm.MRA](server)
	server.in(l.sid, cm.StateMRAREQSent)
	require.Equal(t, cm.MRA{
		Header: cm.Header{TID: l.req.TID}, LocalID: l.sid, RemoteID: l.cid, Answered: cm.ToREQ, ServiceTimeout: 24,
	}, *mra)
	client.gets(server, mra)
	client.in(l.cid, cm.StateMRAREQReceived)
	client.untouched()
	require.Equal(t, (65536+512)*time.Millisecond, client.Deadline().Sub(w.now))

	client.gets(server, mra) // a second one does not prolong it
	w.wait((65536 + 512) * time.Millisecond)
	again := sends[cm.REQ](client)
	client.in(l.cid, cm.StateREQSent)
	require.Equal(t, l.req, again)
	require.Equal(t, 4608*time.Millisecond, client.Deadline().Sub(w.now))
	server.gets(client, again) // MRA_SENT: resend MRA (§5.9)
	client.gets(server, sends[cm.MRA](server))
	client.in(l.cid, cm.StateMRAREQReceived)

	_, rep := server.accept(l.sid) // from MRA_REQ_SENT, to MRA_REQ_RCVD
	client.gets(server, rep)
	client.happens(cm.EventConnectResponse)
}

// §5.8, §5.9: the same for a REP, whose MRA says so.
func TestMRAToREP(t *testing.T) {
	w, client, server := pair(t)
	l := replied(client, server)
	client.gets(server, l.rep)
	client.happens(cm.EventConnectResponse)
	for range 2 {
		w.wait(4096 * time.Millisecond)
		client.gets(server, sends[cm.REP](server))
		mra := sends[cm.MRA](client)
		client.in(l.cid, cm.StateMRAREPSent)
		require.Equal(t, cm.ToREP, mra.Answered)
		require.Equal(t, l.cid, mra.LocalID)
		require.Equal(t, l.sid, mra.RemoteID)
		server.gets(client, mra)
		server.in(l.sid, cm.StateMRAREPReceived)
		server.untouched()
		w.wait((65536 + 512 - 4096) * time.Millisecond)
		server.quiet()
	}
	require.NoError(t, client.Confirm(l.cid, nil))
	server.gets(client, sends[cm.RTU](client))
	server.happens(cm.EventEstablished)
	require.Zero(t, server.Deadline())
}

// An MRA's service timeout is capped.
func TestMRAIsCapped(t *testing.T) {
	w, client, server := pair(t)
	id, _ := client.dial(server)
	client.gets(server, &cm.MRA{LocalID: 5, RemoteID: id, ServiceTimeout: 31})
	require.Equal(t, (131072+512)*time.Millisecond, client.Deadline().Sub(w.now))
}

// A request that the application never answers goes when its peer has stopped
// asking; the application learns of it.
func TestPatience(t *testing.T) {
	w, client, server := pair(t)
	l := asked(client, server)
	require.Equal(t, 16*4608*time.Millisecond, server.Deadline().Sub(w.now))
	server.gets(client, l.req) // tells the peer to wait: so do we
	sends[cm.MRA](server)
	require.Equal(t, (65536+16*4608)*time.Millisecond, server.Deadline().Sub(w.now))
	w.hosts = []*host{server}
	w.wait(3 * time.Minute)
	rej := sends[cm.REJ](server)
	require.Equal(t, cm.ReasonTimeout, rej.Reason)
	require.Equal(t, cm.ToREQ, rej.Rejected)
	require.Equal(t, l.sid, rej.LocalID)
	server.ends(cm.EventUnreachable)
	server.empty()
	require.ErrorIs(t, server.Accept(w.now, l.sid), cm.ErrUnknown)
	client.gets(server, rej)
	require.Equal(t, cm.ReasonTimeout, client.ends(cm.EventRejected).Reason)
	client.empty()
}

// Early and repeated calls of Expire do nothing; a late one does what is due once.
func TestExpire(t *testing.T) {
	w, client, server := pair(t)
	require.Zero(t, client.Deadline())
	client.Expire(w.now)
	client.untouched()
	client.dial(server)
	due := client.Deadline()
	for _, at := range []mono.Time{w.now, due - 1} {
		client.Expire(at)
		client.untouched()
		require.Equal(t, due, client.Deadline())
	}
	late := due.Add(time.Hour)
	client.Expire(late)
	client.Expire(late)
	sends[cm.REQ](client)
	require.Equal(t, late.Add(4608*time.Millisecond), client.Deadline())
}
