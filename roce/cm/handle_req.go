package cm

import (
	"net/netip"
	"time"

	"github.com/gohixl/hixl/internal/mono"
)

// serviceTimeout is what our MRAs ask for: 65 s, as Linux's do (§5.8).
const serviceTimeout = 24

// minPatience is the least time that our application has to answer a REQ,
// whatever the REQ says.
const minPatience = 4 * time.Second

// onREQ: a peer asks for a connection.
func (a *Agent) onREQ(now mono.Time, src netip.Addr, m *REQ) {
	if m.LocalID == 0 {
		a.stats.Ignored++
		return
	}
	peer := src.WithZone("")
	if c := a.byRemote[remoteID{peer, m.CAGUID, m.LocalID}]; c != nil {
		a.duplicateREQ(now, c, m)
		return
	}
	r := newRequest(m)
	private, reason, info := a.judge(&r, src, m)
	if reason != 0 {
		a.refuse(src, m, reason, info)
		return
	}
	if c := a.byQPN[remoteQPN{peer, m.CAGUID, m.QPN}]; c != nil {
		a.supersede(now, c)
		a.refuse(src, m, ReasonStale, nil)
		return
	}
	if reason := a.crowded(peer); reason != 0 {
		a.stats.RefusedLimit++
		a.refuse(src, m, reason, nil)
		return
	}
	c := a.admit(src, m, r)
	a.timers.arm(&c.timer, now.Add(c.patience))
	a.event(Event{Kind: EventConnectRequest, ID: c.id, Peer: src, Request: r, Private: private})
}

func newRequest(m *REQ) Request {
	return Request{
		Service: m.Service, PKey: m.PKey, CAGUID: m.CAGUID, QPN: m.QPN, Transport: m.Transport, MTU: m.MTU,
		MaxRead: m.ResponderResources, MaxDestRead: m.InitiatorDepth, // the roles swap (§5.6)
		RetryCount: m.RetryCount, RNRRetry: m.RNRRetry, SRQ: m.SRQ,
		FlowLabel: m.Primary.FlowLabel, TrafficClass: m.Primary.TrafficClass,
	}
}

// judge checks what can be refused without asking anybody. A reason of 0 is
// approval; private data then is the user's part.
func (a *Agent) judge(r *Request, src netip.Addr, m *REQ) (private []byte, reason Reason, info []byte) {
	gid := func(addr netip.Addr) []byte { g := GIDOf(addr); return g[:] }
	_, listening := a.listeners[m.Service]
	switch {
	case !listening || !connected(m.Service):
		return nil, ReasonServiceID, nil
	case m.Transport > UC:
		return nil, ReasonTransport, nil
	case !usableQPN(m.QPN):
		return nil, ReasonUnsupported, nil
	case m.Primary.LocalGID != GIDOf(src): // our answers and packets would go elsewhere
		return nil, ReasonGID, gid(src)
	case m.Primary.RemoteGID != GIDOf(a.local()):
		return nil, ReasonGID, gid(a.local())
	case !m.MTU.Valid() || m.MTU > a.cfg.MTU:
		return nil, ReasonMTU, []byte{byte(a.cfg.MTU)}
	}
	return a.source(r, src, m.Private[:])
}

// crowded returns why there is no room for another connection from a peer, or 0.
func (a *Agent) crowded(peer netip.Addr) Reason {
	switch {
	case len(a.conns) >= a.cfg.MaxConnections:
		return ReasonNoQP
	case a.halfOpen >= a.cfg.MaxHalfOpen, a.perPeer[peer] >= a.cfg.MaxHalfOpenPerPeer:
		return ReasonNoResources
	}
	return 0
}

// admit makes a passive connection of a REQ (§5.7).
func (a *Agent) admit(src netip.Addr, m *REQ, r Request) *conn {
	c := a.newConn(src)
	c.state, c.tid, c.request = StateREQReceived, m.TID, r
	c.qp = QPParams{
		Peer: c.peer, Transport: m.Transport, SendPSN: m.StartPSN, MTU: m.MTU,
		Timeout: m.Primary.ACKTimeout, RetryCount: m.RetryCount, RNRRetry: m.RNRRetry,
		FlowLabel: m.Primary.FlowLabel, TrafficClass: m.Primary.TrafficClass, PKey: m.PKey, PeerSRQ: m.SRQ,
	}
	c.pathTimeout = m.Primary.ACKTimeout
	c.interval = Millis(max(minResponse, min(m.LocalTimeout, maxResponse)))
	c.retries = int(m.MaxCMRetries)
	// The peer resends after two lifetimes and our response timeout (§5.8).
	each := 2*Millis(min(Lifetime(m.Primary.ACKTimeout), maxTimewait)) + Millis(min(m.RemoteTimeout, maxResponse))
	c.patience = max(minPatience, each*time.Duration(c.retries+1))
	if m.HasAlternate() {
		c.failover = FailoverNotSupported
	}
	a.learn(c, m.CAGUID, m.LocalID, m.QPN)
	c.halfOpen = true
	a.halfOpen++
	a.busy(c.peer, 1)
	return c
}

// duplicateREQ answers a REQ whose ids name a connection (§5.9). While the
// application thinks, the peer is told to wait; REP has its own timer.
func (a *Agent) duplicateREQ(now mono.Time, c *conn, m *REQ) {
	a.stats.Duplicates++
	switch {
	case c.active: // the peer's id for another connection
	case c.state.asked():
		if c.state == StateMRAREQSent {
			a.stats.Resent++
		}
		c.state = StateMRAREQSent
		a.tell(c, &MRA{
			Header: Header{TID: c.tid}, LocalID: c.id, RemoteID: c.remote,
			Answered: ToREQ, ServiceTimeout: serviceTimeout,
		})
		a.timers.arm(&c.timer, now.Add(Millis(serviceTimeout)+c.patience))
	case c.state == StateTimewait:
		a.refuse(c.to, m, ReasonStale, nil)
	}
}

// onREP: the peer accepts our REQ.
func (a *Agent) onREP(now mono.Time, src netip.Addr, m *REP) {
	c := a.ours(src, m.RemoteID)
	if c == nil || !c.active || m.LocalID == 0 || !usableQPN(m.QPN) {
		a.stats.Ignored++
		return
	}
	switch {
	case c.state.requested():
		a.responded(now, c, m)
	case c.state == StateTimewait, m.LocalID != c.remote:
		// Made of a late duplicate of our REQ, or not to know that it is over.
		a.refuseREP(src, c, m)
	case c.state.responded():
		a.stats.Duplicates++
		if c.state == StateMRAREPSent {
			a.stats.Resent++
		}
		c.state = StateMRAREPSent
		a.tell(c, &MRA{
			Header: Header{TID: c.tid}, LocalID: c.id, RemoteID: c.remote,
			Answered: ToREP, ServiceTimeout: serviceTimeout,
		})
	case c.state == StateEstablished:
		a.stats.Duplicates++
		a.stats.Resent++
		a.queue(c.pending) // the RTU was lost
	default:
		a.stats.Duplicates++
	}
}

// responded takes the first REP to our REQ.
func (a *Agent) responded(now mono.Time, c *conn, m *REP) {
	if a.byRemote[remoteID{c.peer, m.CAGUID, m.LocalID}] != nil {
		a.stats.Ignored++ // the peer's id for another connection
		return
	}
	if old := a.byQPN[remoteQPN{c.peer, m.CAGUID, m.QPN}]; old != nil {
		a.supersede(now, old)
		a.refuseREP(c.to, c, m)
		a.end(now, c, true, Event{Kind: EventRejected, Local: true, Reason: ReasonStale})
		return
	}
	a.timers.stop(&c.timer)
	c.pending = nil
	a.learn(c, m.CAGUID, m.LocalID, m.QPN)
	c.state = StateREPReceived
	c.qp.SendPSN, c.qp.RNRRetry, c.qp.PeerSRQ = m.StartPSN, m.RNRRetry, m.SRQ
	c.qp.MaxRead = min(c.qp.MaxRead, m.ResponderResources)
	c.qp.MaxDestRead = min(c.qp.MaxDestRead, m.InitiatorDepth)
	c.qp.Timeout = ACKTimeout(m.TargetACKDelay, c.lifetime)
	c.pathTimeout = c.qp.Timeout
	a.event(Event{Kind: EventConnectResponse, ID: c.id, Peer: c.to, QPN: c.qpn, QP: c.qp, Private: m.Private[:]})
}

// onREJ: the peer refuses, or gives up.
func (a *Agent) onREJ(now mono.Time, src netip.Addr, m *REJ) {
	c := a.rejected(src, m)
	if c == nil || c.state == StateTimewait {
		a.stats.Ignored++
		return
	}
	e := Event{Kind: EventRejected, Reason: m.Reason, Info: m.Info(), Private: m.Private[:]}
	hold := !c.state.asked() && !c.state.requested()
	switch {
	case c.state == StateEstablished, c.state == StateDREQSent:
		e.Kind = EventDisconnected
	case c.state.requested() && m.Reason == ReasonStale:
		hold = true // the QPN is in use in the peer's eyes (C2)
	}
	a.end(now, c, hold, e)
}

// rejected returns the connection that a REJ is for (§5.9). A timed-out peer may
// never have learned our id; its CA GUID stands for it (C3).
func (a *Agent) rejected(src netip.Addr, m *REJ) *conn {
	if info := m.Info(); m.Reason == ReasonTimeout && len(info) >= 8 {
		c := a.byRemote[remoteID{src.WithZone(""), be.Uint64(info), m.LocalID}]
		if c != nil && (m.RemoteID == 0 || m.RemoteID == c.id) {
			return c
		}
	}
	// Before a REP we have only our own id to go by; "other" is what kernels
	// with bug C1 say.
	if c := a.ours(src, m.RemoteID); c != nil && c.state.requested() {
		if m.Rejected == ToREP {
			return nil
		}
		return c
	}
	if m.Rejected == ToREQ {
		return nil // it was answered by then: a REJ of a late duplicate
	}
	return a.both(src, m.RemoteID, m.LocalID)
}
