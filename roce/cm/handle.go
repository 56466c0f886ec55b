package cm

import (
	"net/netip"

	"github.com/gohixl/hixl/internal/mono"
)

// Handle takes the payload of a packet to queue pair 1 and the address it came
// from, with a zone if answers to it need one. The bytes are not kept. It never
// fails: what means nothing changes nothing but [Stats].
func (a *Agent) Handle(now mono.Time, src netip.Addr, mad []byte) {
	attr, err := Peek(mad)
	if err != nil {
		a.stats.Malformed++
		return
	}
	a.stats.Received[attr-AttrREQ]++
	src = src.Unmap()
	if !a.welcome(src) {
		a.stats.Ignored++
		return
	}
	switch attr {
	case AttrREQ:
		handle(now, src, mad, a.onREQ)
	case AttrMRA:
		handle(now, src, mad, a.onMRA)
	case AttrREJ:
		handle(now, src, mad, a.onREJ)
	case AttrREP:
		handle(now, src, mad, a.onREP)
	case AttrRTU:
		handle(now, src, mad, a.onRTU)
	case AttrDREQ:
		handle(now, src, mad, a.onDREQ)
	case AttrDREP:
		handle(now, src, mad, a.onDREP)
	case AttrSIDRREQ:
		handle(now, src, mad, a.onSIDRREQ)
	case AttrSIDRREP:
		handle(now, src, mad, a.onSIDRREP)
	case AttrLAP:
		handle(now, src, mad, a.onLAP)
	case AttrAPR:
		a.stats.Ignored++ // we never send a LAP
	}
}

// handle decodes a message and gives it to its method.
func handle[M any, P interface {
	*M
	Message
}](now mono.Time, src netip.Addr, mad []byte, on func(mono.Time, netip.Addr, P),
) {
	m := P(new(M))
	if m.Decode(mad) == nil { // Peek has found nothing wrong
		on(now, src, m)
	}
}

// onMRA: the peer needs more time (§5.8).
func (a *Agent) onMRA(now mono.Time, src netip.Addr, m *MRA) {
	var c *conn
	switch m.Answered {
	case ToREQ:
		if c = a.ours(src, m.RemoteID); c != nil && c.state == StateREQSent {
			a.delay(now, c, StateMRAREQReceived, m.ServiceTimeout)
			return
		}
	case ToREP:
		if c = a.both(src, m.RemoteID, m.LocalID); c != nil && c.state == StateREPSent {
			a.delay(now, c, StateMRAREPReceived, m.ServiceTimeout)
			return
		}
	default: // of a LAP, which we never send
	}
	a.stats.Ignored++
}

// delay replaces the running timeout. The state keeps further MRAs from doing so
// again before the next resend, which bounds the whole wait.
func (a *Agent) delay(now mono.Time, c *conn, s State, service uint8) {
	c.state = s
	a.timers.arm(&c.timer, now.Add(Millis(min(service, maxService))+Millis(min(c.pathTimeout, maxTimewait))))
}

// onRTU: the peer has our REP.
func (a *Agent) onRTU(_ mono.Time, src netip.Addr, m *RTU) {
	c := a.both(src, m.RemoteID, m.LocalID)
	switch {
	case c == nil || c.active:
		a.stats.Ignored++
	case c.state.replied():
		a.establish(c, m.Private[:])
	default:
		a.stats.Duplicates++
	}
}

// onDREQ: the peer disconnects (§5.13). It gets its answer even if we know of no
// connection, so that it can stop asking (§5.9).
func (a *Agent) onDREQ(now mono.Time, src netip.Addr, m *DREQ) {
	answer := &DREP{Header: Header{TID: m.TID}, LocalID: m.RemoteID, RemoteID: m.LocalID}
	c := a.both(src, m.RemoteID, m.LocalID)
	if c == nil {
		a.stats.Ignored++
		s := Send{To: src, Ends: m.QPN} // whose end may be longer ago than TIMEWAIT
		answer.Append(s.MAD[:0])
		a.queue(&s)
		return
	}
	if c.qpn == 0 || m.QPN != c.qpn { // asked but not accepted, or another connection's past
		a.stats.Ignored++
		return
	}
	switch {
	case c.state == StateTimewait:
		a.stats.Duplicates++
		a.stats.Resent++
		a.tell(c, answer)
	case c.state.asked(): // prepared; the peer cannot know the QPN
		a.stats.Ignored++
	default: // also in REP_SENT (C6), REP_RCVD, and when both began (DREQ_SENT)
		local := c.state == StateDREQSent
		a.tell(c, answer)
		a.end(now, c, true, Event{Kind: EventDisconnected, Local: local, Private: m.Private[:]})
	}
}

// onDREP: the peer agrees to our DREQ.
func (a *Agent) onDREP(now mono.Time, src netip.Addr, m *DREP) {
	c := a.both(src, m.RemoteID, m.LocalID)
	if c == nil || c.state != StateDREQSent {
		a.stats.Ignored++
		return
	}
	a.end(now, c, true, Event{Kind: EventDisconnected, Local: true, Private: m.Private[:]})
}

// onLAP: there are no alternate paths (§5.4 LAP).
func (a *Agent) onLAP(_ mono.Time, src netip.Addr, m *LAP) {
	c := a.both(src, m.RemoteID, m.LocalID)
	if c == nil || c.state != StateEstablished || m.QPN != c.qpn {
		a.stats.Ignored++
		return
	}
	a.tell(c, &APR{Header: Header{TID: m.TID}, LocalID: c.id, RemoteID: c.remote, Status: APRUnsupported})
}
