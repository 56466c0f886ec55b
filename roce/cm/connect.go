package cm

import (
	"fmt"
	"net/netip"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
)

// Connect asks for a connection and returns its id. ConnectResponse, Rejected or
// Unreachable follows. Errors: *[ParamError], *[LimitError].
func (a *Agent) Connect(now mono.Time, p ConnectParams) (CommID, error) {
	if err := a.checkConnect(&p); err != nil {
		return 0, err
	}
	if len(a.conns) >= a.cfg.MaxConnections {
		return 0, &LimitError{Limit: "MaxConnections", Max: a.cfg.MaxConnections}
	}
	c := a.newConn(p.Peer)
	c.active, c.state = true, StateREQSent
	c.tid = a.tid(c.id)
	m := a.request(c, &p)
	a.start(now, c, m)
	return c.id, nil
}

func (a *Agent) checkConnect(p *ConnectParams) error {
	if err := a.checkPeer(&p.Peer); err != nil {
		return err
	}
	setDefault(&p.MTU, a.cfg.MTU)
	setDefault(&p.ACKTimeout, DefaultACKTimeout)
	setDefault(&p.ResponseTimeout, DefaultResponseTimeout)
	setDefault(&p.PKey, 0xFFFF)
	p.MaxRead = orDefault(p.MaxRead, a.cfg.MaxReads)
	p.MaxDestRead = orDefault(p.MaxDestRead, a.cfg.MaxReads)
	p.RetryCount = orDefault(p.RetryCount, DefaultRetries)
	p.RNRRetry = orDefault(p.RNRRetry, DefaultRetries)
	p.MinRNRTimer = orDefault(p.MinRNRTimer, DefaultRNRTimer)
	p.CMRetries = orDefault(p.CMRetries, DefaultCMRetries)
	switch {
	case !usableQPN(p.QPN):
		return &ParamError{Param: "QPN", Value: p.QPN, Allowed: "2 to 0xfffffe"}
	case p.Transport > UC:
		return &ParamError{Param: "Transport", Value: p.Transport, Allowed: "RC or UC"}
	case !p.MTU.Valid() || p.MTU > a.cfg.MTU:
		return &ParamError{Param: "MTU", Value: p.MTU, Allowed: fmt.Sprintf("256 to %v bytes", a.cfg.MTU)}
	case p.FlowLabel > 0xFFFFF:
		return &ParamError{Param: "FlowLabel", Value: p.FlowLabel, Allowed: "0 to 0xfffff"}
	case p.Service.HasIPHeader() && !connected(p.Service):
		return &ParamError{Param: "Service", Value: p.Service, Allowed: "one for connections; Resolve asks for datagram services"}
	}
	if err := checkPSN(p.StartPSN); err != nil {
		return err
	}
	if err := checkRanges([]ranged{
		{"RetryCount", p.RetryCount, 7},
		{"RNRRetry", p.RNRRetry, 7},
		{"MinRNRTimer", p.MinRNRTimer, 31},
		{"CMRetries", p.CMRetries, 15},
		{"ACKTimeout", p.ACKTimeout, maxExponent},
		{"ResponseTimeout", p.ResponseTimeout, maxExponent},
		{"MaxRead", p.MaxRead, a.cfg.MaxReads},
		{"MaxDestRead", p.MaxDestRead, a.cfg.MaxReads},
	}); err != nil {
		return err
	}
	return checkLen("Private", p.Private, room(p.Service, len(REQ{}.Private)))
}

// request fills in a connection and makes its REQ (§5.6).
func (a *Agent) request(c *conn, p *ConnectParams) *REQ {
	setDefault(&p.SrcPort, 0xC000|uint16(a.cfg.Rand())) // 49152 to 65535
	if p.FlowLabel == 0 {
		p.FlowLabel = a.flowLabel(p.Service, p.SrcPort)
	}
	c.qpn = p.QPN
	c.lifetime = Lifetime(p.ACKTimeout)
	c.pathTimeout = ACKTimeout(a.cfg.ACKDelay, c.lifetime)
	c.interval = 2*Millis(c.lifetime) + Millis(p.ResponseTimeout)
	c.retries = int(p.CMRetries)
	c.qp = QPParams{
		Peer: c.peer, Transport: p.Transport, RecvPSN: a.startPSN(p.StartPSN), MTU: p.MTU,
		MaxRead: p.MaxRead, MaxDestRead: p.MaxDestRead, Timeout: c.pathTimeout,
		RetryCount: p.RetryCount, MinRNRTimer: p.MinRNRTimer,
		FlowLabel: p.FlowLabel, TrafficClass: p.TrafficClass, PKey: p.PKey,
	}
	m := &REQ{
		Header: Header{TID: c.tid}, LocalID: c.id, Service: p.Service, CAGUID: a.cfg.CAGUID, QPN: p.QPN,
		ResponderResources: p.MaxDestRead, InitiatorDepth: p.MaxRead,
		RemoteTimeout: p.ResponseTimeout, LocalTimeout: p.ResponseTimeout, MaxCMRetries: p.CMRetries,
		Transport: p.Transport, StartPSN: c.qp.RecvPSN, RetryCount: p.RetryCount, RNRRetry: p.RNRRetry,
		PKey: p.PKey, MTU: p.MTU, SRQ: p.SRQ,
		Primary: Path{
			LocalLID: LIDPermissive, RemoteLID: LIDPermissive,
			LocalGID: GIDOf(a.local()), RemoteGID: GIDOf(c.peer),
			FlowLabel: p.FlowLabel, TrafficClass: p.TrafficClass, HopLimit: hopLimit,
			ACKTimeout: c.pathTimeout,
		},
	}
	a.putPrivate(m.Private[:], p.Service, p.SrcPort, c.peer, p.Private)
	return m
}

// hopLimit is what Linux's routes have (§5.6).
const hopLimit = 64

// flowLabel is what RDMA CM derives from the two ports (§1.4).
func (a *Agent) flowLabel(s ServiceID, src uint16) uint32 {
	if _, dst, ok := s.Port(); ok {
		return roce.CMFlowLabel(src, dst)
	}
	return uint32(a.cfg.Rand()) & 0xFFFFF
}

// startPSN returns the PSN that we expect first.
func (a *Agent) startPSN(given *roce.PSN) roce.PSN {
	if given != nil {
		return *given
	}
	return roce.PSN(a.cfg.Rand()) & roce.PSNMask
}

// putPrivate writes the IP header, where the service has one, and user data.
func (a *Agent) putPrivate(b []byte, s ServiceID, port uint16, peer netip.Addr, user []byte) {
	if s.HasIPHeader() {
		h := IPHeader{SrcPort: port, Src: a.local(), Dst: peer}
		h.Append(b[:0])
		b = b[IPHeaderLen:]
	}
	copy(b, user)
}

// Confirm answers ConnectResponse: the queue pair is in RTS, RTU leaves, the
// connection is established. Private is for the peer's application, at most 224
// bytes, and gets lost if the RTU does. Errors: *[IDError], *[StateError],
// *[ParamError].
func (a *Agent) Confirm(id CommID, private []byte) error {
	c, err := a.find("Confirm", id)
	if err != nil {
		return err
	}
	if !c.state.responded() {
		return &StateError{Command: "Confirm", ID: id, State: c.state}
	}
	m := &RTU{Header: Header{TID: c.tid}, LocalID: c.id, RemoteID: c.remote}
	if err := checkLen("Private", private, len(m.Private)); err != nil {
		return err
	}
	copy(m.Private[:], private)
	c.state = StateEstablished
	a.keep(c, m) // a lost RTU is asked for by another REP
	a.queue(c.pending)
	return nil
}
