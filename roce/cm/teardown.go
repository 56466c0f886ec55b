package cm

import "github.com/gohixl/hixl/internal/mono"

// Reject refuses a connection: after ConnectRequest, also when it was accepted
// but is not established, or after ConnectResponse. Only TimewaitExit follows.
// Errors: *[IDError], *[StateError], *[ParamError].
func (a *Agent) Reject(now mono.Time, id CommID, p RejectParams) error {
	c, err := a.find("Reject", id)
	if err != nil {
		return err
	}
	if !c.state.asked() && !c.state.replied() && !c.state.responded() {
		return &StateError{Command: "Reject", ID: id, State: c.state}
	}
	if err := checkLen("Info", p.Info, MaxARI); err != nil {
		return err
	}
	if err := checkLen("Private", p.Private, len(REJ{}.Private)); err != nil {
		return err
	}
	setDefault(&p.Reason, ReasonConsumer)
	a.reject(now, c, a.rej(c, p.Reason, p.Info, p.Private))
	return nil
}

// reject sends a REJ and ends the connection without an event of its own. The
// peer cannot have sent to a queue pair whose number it was not told.
func (a *Agent) reject(now mono.Time, c *conn, m *REJ) {
	hold := !c.state.asked() && !c.state.requested()
	a.tell(c, m)
	c.silent = true
	a.end(now, c, hold, Event{})
}

// Disconnect begins the orderly end of an established connection, whose queue
// pair should be in the error state by now. Disconnected follows when the peer has
// answered, or has not. Private is for the peer's application, at most 220 bytes.
// Errors: *[IDError], *[StateError], *[ParamError].
func (a *Agent) Disconnect(now mono.Time, id CommID, private []byte) error {
	c, err := a.find("Disconnect", id)
	if err != nil {
		return err
	}
	if c.state != StateEstablished {
		return &StateError{Command: "Disconnect", ID: id, State: c.state}
	}
	m := a.dreq(c)
	if err := checkLen("Private", private, len(m.Private)); err != nil {
		return err
	}
	copy(m.Private[:], private)
	a.disconnect(now, c, m)
	return nil
}

func (a *Agent) disconnect(now mono.Time, c *conn, m *DREQ) {
	c.state = StateDREQSent
	a.unpair(c) // the peer may be done with it, and its answer lost
	a.start(now, c, m)
}

// dreq makes a DREQ. Its transaction id is its sender's own, which for an active
// connection is that of the REQ (§5.3).
func (a *Agent) dreq(c *conn) *DREQ {
	return &DREQ{Header: Header{TID: a.tid(c.id)}, LocalID: c.id, RemoteID: c.remote, QPN: c.qp.DestQPN}
}

// Destroy ends a connection or SIDR exchange at once, whatever its state, and
// tells the peer once (C11). Of a connection, only TimewaitExit follows; of a SIDR
// exchange, nothing. An id that means nothing is ignored.
func (a *Agent) Destroy(now mono.Time, id CommID) {
	if s := a.sidrs[id]; s != nil {
		a.dropSIDR(s)
		return
	}
	c := a.conns[id]
	if c == nil {
		return
	}
	switch {
	case c.state == StateTimewait:
		c.silent = true
	case c.state.requested():
		a.reject(now, c, a.timeoutREJ(c))
	case c.state == StateEstablished:
		a.tell(c, a.dreq(c))
		fallthrough
	case c.state == StateDREQSent:
		c.silent = true
		a.end(now, c, true, Event{})
	default:
		a.reject(now, c, a.rej(c, ReasonConsumer, nil, nil))
	}
}

// supersede ends a connection whose peer has a newer one on the same queue pair
// (§5.9): an established one by DREQ, any other at once.
func (a *Agent) supersede(now mono.Time, c *conn) {
	a.stats.Stale++
	switch c.state {
	case StateEstablished:
		a.report(c, Event{Kind: EventDisconnected, Local: true, Reason: ReasonStale})
		a.disconnect(now, c, a.dreq(c))
	default:
		hold := !c.state.asked()
		a.tell(c, a.rej(c, ReasonStale, nil, nil))
		a.end(now, c, hold, Event{Kind: EventRejected, Local: true, Reason: ReasonStale})
	}
}
