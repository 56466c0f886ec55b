package cm

import (
	"github.com/gohixl/hixl/internal/mono"
)

// Prepare decides how a requested connection will be accepted and returns the
// attributes with which the queue pair must be in RTS before [Agent.Accept]: the
// peer may send as soon as it has our answer (§5.7). It may be called again; of
// several queue pair numbers the last is the one that TimewaitExit gives back.
// Errors: *[IDError], *[StateError], *[ParamError].
func (a *Agent) Prepare(id CommID, p AcceptParams) (QPParams, error) {
	c, err := a.find("Prepare", id)
	if err != nil {
		return QPParams{}, err
	}
	if !c.state.asked() {
		return QPParams{}, &StateError{Command: "Prepare", ID: id, State: c.state}
	}
	p.MaxRead = orDefault(p.MaxRead, a.cfg.MaxReads)
	p.MaxDestRead = orDefault(p.MaxDestRead, a.cfg.MaxReads)
	p.RNRRetry = orDefault(p.RNRRetry, DefaultRetries)
	p.MinRNRTimer = orDefault(p.MinRNRTimer, DefaultRNRTimer)
	if !usableQPN(p.QPN) {
		return QPParams{}, &ParamError{Param: "QPN", Value: p.QPN, Allowed: "2 to 0xfffffe"}
	}
	if err := checkPSN(p.StartPSN); err != nil {
		return QPParams{}, err
	}
	m := &REP{}
	if err := checkLen("Private", p.Private, len(m.Private)); err != nil {
		return QPParams{}, err
	}
	if err := checkRanges([]ranged{
		{"RNRRetry", p.RNRRetry, 7},
		{"MinRNRTimer", p.MinRNRTimer, 31},
		{"MaxRead", p.MaxRead, a.cfg.MaxReads},
		{"MaxDestRead", p.MaxDestRead, a.cfg.MaxReads},
	}); err != nil {
		return QPParams{}, err
	}
	c.qpn = p.QPN
	c.qp.RecvPSN = a.startPSN(p.StartPSN)
	c.qp.MaxRead = min(p.MaxRead, c.request.MaxRead)
	c.qp.MaxDestRead = min(p.MaxDestRead, c.request.MaxDestRead)
	c.qp.MinRNRTimer = p.MinRNRTimer
	*m = REP{
		Header: Header{TID: c.tid}, LocalID: c.id, RemoteID: c.remote, QPN: p.QPN, StartPSN: c.qp.RecvPSN,
		ResponderResources: c.qp.MaxDestRead, InitiatorDepth: c.qp.MaxRead,
		TargetACKDelay: a.cfg.ACKDelay, RNRRetry: p.RNRRetry, SRQ: p.SRQ, CAGUID: a.cfg.CAGUID,
		Failover: c.failover,
	}
	copy(m.Private[:], p.Private)
	c.prepared = m
	return c.qp, nil
}

// Accept answers a requested connection as Prepare decided. Established, Rejected,
// Unreachable or Disconnected follows. Serve the queue pair without waiting for
// Established (§5.12). Errors: *[IDError], *[StateError].
func (a *Agent) Accept(now mono.Time, id CommID) error {
	c, err := a.find("Accept", id)
	if err != nil {
		return err
	}
	if !c.state.asked() || c.prepared == nil {
		return &StateError{Command: "Accept", ID: id, State: c.state}
	}
	c.state = StateREPSent
	a.start(now, c, c.prepared)
	c.prepared = nil
	return nil
}

// Established says that the first packet has arrived on a passive connection's
// queue pair, which proves that the peer has our REP although no RTU has come
// (§5.12). On a connection that is past that it does nothing. Errors: *[IDError],
// *[StateError].
func (a *Agent) Established(id CommID) error {
	c, err := a.find("Established", id)
	if err != nil {
		return err
	}
	if c.state < StateEstablished && !c.state.replied() {
		return &StateError{Command: "Established", ID: id, State: c.state}
	}
	if c.state.replied() {
		a.establish(c, nil)
	}
	return nil
}

// establish ends the handshake of a passive connection.
func (a *Agent) establish(c *conn, private []byte) {
	a.timers.stop(&c.timer)
	a.settle(c)
	c.state, c.pending = StateEstablished, nil
	a.event(Event{Kind: EventEstablished, ID: c.id, Peer: c.to, QPN: c.qpn, Private: private})
}
