package cm

import "net/netip"

// rej makes a connection's REJ. Which message it rejects and which ids it carries
// follows from the state, which therefore must not change before (§5.10, C1).
func (a *Agent) rej(c *conn, reason Reason, info, private []byte) *REJ {
	m := &REJ{Header: Header{TID: c.tid}, LocalID: c.id, RemoteID: c.remote, Reason: reason}
	switch {
	case c.state == StateREQReceived:
		m.LocalID, m.Rejected = 0, ToREQ
	case c.state == StateMRAREQSent:
		m.Rejected = ToREQ
	case c.state.responded():
		m.Rejected = ToREP
	default:
		m.Rejected = ToOther
	}
	m.InfoLen = uint8(copy(m.ARI[:], info))
	copy(m.Private[:], private)
	return m
}

// timeoutREJ carries our CA GUID, by which a peer finds its connection even if we
// never learned its id (§5.9, C3).
func (a *Agent) timeoutREJ(c *conn) *REJ {
	return a.rej(c, ReasonTimeout, be.AppendUint64(nil, a.cfg.CAGUID), nil)
}

// refuse answers a REQ for which no connection was made.
func (a *Agent) refuse(src netip.Addr, m *REQ, reason Reason, info []byte) {
	a.stats.Refused++
	r := &REJ{Header: Header{TID: m.TID}, RemoteID: m.LocalID, Rejected: ToREQ, Reason: reason}
	r.InfoLen = uint8(copy(r.ARI[:], info))
	a.post(src, m.Primary.FlowLabel, m.Primary.TrafficClass, r)
}

// refuseREP answers a REP that belongs to no connection of ours that still wants
// one.
func (a *Agent) refuseREP(src netip.Addr, c *conn, m *REP) {
	a.stats.Refused++
	a.post(src, c.qp.FlowLabel, c.qp.TrafficClass, &REJ{
		Header: Header{TID: m.TID}, LocalID: c.id, RemoteID: m.LocalID,
		Rejected: ToREP, Reason: ReasonStale,
	})
}
