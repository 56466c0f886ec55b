package cm

import (
	"net/netip"
	"time"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
)

// conn is one connection, from its first message to the end of TIMEWAIT.
type conn struct {
	id, remote CommID // remote is 0 until the peer has told it
	state      State
	active     bool
	to         netip.Addr // the peer, with zone
	peer       netip.Addr // without
	guid       uint64     // the peer's CA; counts once remote is known
	tid        uint64     // of the REQ
	qpn        roce.QPN   // ours; 0 until Accept
	qp         QPParams   // as far as they are known

	// What a passive connection was offered, and what Prepare decided.
	request  Request
	failover Failover
	prepared *REP

	// lifetime is an active connection's packet lifetime, an exponent.
	lifetime uint8

	// pathTimeout is the exponent of TIMEWAIT and of the wait after an MRA (§5.8, §5.13).
	pathTimeout uint8
	// interval is between resends, of which there are at most retries.
	interval time.Duration
	retries  int
	resent   int
	// pending is the message that is resent: REQ, REP or DREQ, and the RTU of an
	// established active connection.
	pending *Send
	// patience is how long the peer waits for our application.
	patience time.Duration

	halfOpen bool // counted
	silent   bool // its end was reported, or is known to whoever ended it
	timer    timer
}

func (a *Agent) newConn(to netip.Addr) *conn {
	c := &conn{id: a.newID(), to: to, peer: to.WithZone("")}
	c.timer.fire = func(now mono.Time) { a.expire(now, c) }
	a.conns[c.id] = c
	return c
}

// find returns the connection that a command is for.
func (a *Agent) find(command string, id CommID) (*conn, error) {
	if c := a.conns[id]; c != nil {
		return c, nil
	}
	return nil, &IDError{Command: command, ID: id}
}

// both returns the connection that a message names with both ids, if it comes
// from the connection's peer.
func (a *Agent) both(src netip.Addr, local, remote CommID) *conn {
	c := a.conns[local]
	if c == nil || remote == 0 || c.remote != remote || c.peer != src.WithZone("") {
		return nil
	}
	return c
}

// ours returns the connection that a message names with our id alone.
func (a *Agent) ours(src netip.Addr, local CommID) *conn {
	if c := a.conns[local]; c != nil && c.peer == src.WithZone("") {
		return c
	}
	return nil
}

// tell sends one of the connection's messages that no timer repeats.
func (a *Agent) tell(c *conn, m Message) {
	s := c.send(m)
	a.queue(&s)
}

// send makes what is to be sent of one of the connection's messages.
func (c *conn) send(m Message) Send {
	s := Send{To: c.to, FlowLabel: c.qp.FlowLabel, TrafficClass: c.qp.TrafficClass}
	if k := m.Attribute(); k == AttrDREQ || k == AttrDREP {
		s.Ends = c.qpn
	}
	m.Append(s.MAD[:0])
	return s
}

// start sends one that is repeated until it is answered.
func (a *Agent) start(now mono.Time, c *conn, m Message) {
	a.keep(c, m)
	a.queue(c.pending)
	c.resent = 0
	a.timers.arm(&c.timer, now.Add(a.wait(c.interval, 0)))
}

// keep remembers a message for resending.
func (a *Agent) keep(c *conn, m Message) {
	s := c.send(m)
	c.pending = &s
}

// wait returns the time to the next resend after n of them.
func (a *Agent) wait(interval time.Duration, n int) time.Duration {
	if a.cfg.FirstRetry == 0 || n > 20 {
		return interval
	}
	return min(interval, a.cfg.FirstRetry<<n)
}

// resend repeats the pending message, or returns false when it was repeated often
// enough.
func (a *Agent) resend(now mono.Time, c *conn) bool {
	if c.resent >= c.retries {
		return false
	}
	c.resent++
	a.stats.Resent++
	a.queue(c.pending)
	a.timers.arm(&c.timer, now.Add(a.wait(c.interval, c.resent)))
	return true
}

// learn notes the ids that the peer has told, by which duplicates and stale
// connections are recognised.
func (a *Agent) learn(c *conn, guid uint64, id CommID, qpn roce.QPN) {
	c.guid, c.remote, c.qp.DestQPN = guid, id, qpn
	a.byRemote[remoteID{c.peer, guid, id}] = c
	a.byQPN[remoteQPN{c.peer, guid, qpn}] = c
}

// unpair ends the claim of a connection on its peer's QPN: a new connection with
// it does not make this one stale any more.
func (a *Agent) unpair(c *conn) {
	if k := (remoteQPN{c.peer, c.guid, c.qp.DestQPN}); a.byQPN[k] == c {
		delete(a.byQPN, k)
	}
}

// settle ends the half-open phase of a passive connection.
func (a *Agent) settle(c *conn) {
	if c.halfOpen {
		c.halfOpen = false
		a.halfOpen--
		a.busy(c.peer, -1)
	}
}

// end takes a connection out of service and reports how, unless that is known.
// With hold, its id and QPN stay in TIMEWAIT (§5.13).
func (a *Agent) end(now mono.Time, c *conn, hold bool, e Event) {
	a.report(c, e)
	a.settle(c)
	a.timers.stop(&c.timer)
	c.pending, c.prepared = nil, nil
	a.unpair(c)
	if !hold || c.qpn == 0 {
		a.release(c)
		return
	}
	c.state = StateTimewait
	a.timers.arm(&c.timer, now.Add(Millis(min(c.pathTimeout, maxTimewait))))
}

// report queues the event that says how a connection ended, once.
func (a *Agent) report(c *conn, e Event) {
	if !c.silent {
		c.silent = true
		e.ID, e.Peer, e.QPN = c.id, c.to, c.qpn
		a.event(e)
	}
}

// release forgets a connection.
func (a *Agent) release(c *conn) {
	delete(a.conns, c.id)
	if c.remote != 0 {
		delete(a.byRemote, remoteID{c.peer, c.guid, c.remote})
	}
	a.ids.retire(c.id)
	a.event(Event{Kind: EventTimewaitExit, ID: c.id, Peer: c.to, QPN: c.qpn})
}

// expire is what a connection's timer does.
func (a *Agent) expire(now mono.Time, c *conn) {
	switch {
	case c.state == StateTimewait:
		a.release(c)
	case c.state.requested():
		if a.resend(now, c) {
			c.state = StateREQSent // one MRA delays one resend
			return
		}
		a.giveUp(now, c, false)
	case c.state.replied():
		if a.resend(now, c) {
			c.state = StateREPSent
			return
		}
		a.giveUp(now, c, true)
	case c.state.asked():
		a.giveUp(now, c, false)
	case c.state == StateDREQSent:
		if !a.resend(now, c) {
			a.end(now, c, true, Event{Kind: EventDisconnected, Local: true, Reason: ReasonTimeout})
		}
	}
}

// giveUp ends a connection whose peer does not answer, or has waited too long, and
// tells the peer in case it is there after all (§5.8).
func (a *Agent) giveUp(now mono.Time, c *conn, hold bool) {
	a.tell(c, a.timeoutREJ(c))
	a.end(now, c, hold, Event{Kind: EventUnreachable})
}
