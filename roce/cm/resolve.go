package cm

import (
	"net/netip"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
)

const (
	// sidrTimeout is the exponent of how often a SIDR_REQ is repeated (§5.8).
	sidrTimeout = 20
	// sidrRetries is how often.
	sidrRetries = 15
	// sidrHold is the exponent of how long an answer is remembered: 65 s, as
	// long as the peer asks (§5.11). A request is kept as long.
	sidrHold = 24
)

// DefaultQKey is the Q_Key of RDMA CM's datagram queue pairs (§5.1).
const DefaultQKey = 0x01234567

// ResolveParams describes what to ask a SIDR server for. Peer and Service must be
// given.
type ResolveParams struct {
	// Peer is the address of the other NIC, of the same family as ours.
	Peer netip.Addr
	// Service is what to reach there, such as PortSpaceUDP.Service(7174).
	Service ServiceID
	// SrcPort is this side's port; 0 takes a random one of 49152 to 65535.
	SrcPort uint16
	PKey    uint16 // 0 is 0xFFFF
	// Private is for the peer's application: at most 180 bytes, 216 with a
	// service id that is not an IP one. Not kept.
	Private []byte
}

// SIDRAnswer is the answer to a SIDR request.
type SIDRAnswer struct {
	// Status refuses if it is not [SIDROK].
	Status SIDRStatus
	// QPN is the datagram queue pair and QKey its key, 0 takes [DefaultQKey].
	QPN  roce.QPN
	QKey uint32
	// Private is for the peer's application, at most 136 bytes.
	Private []byte
}

// sidr is a SIDR exchange: a request of ours until its answer, or a peer's until
// its answer is forgotten.
type sidr struct {
	id      CommID // of ours the request id, of a peer's only a handle
	to      netip.Addr
	client  bool
	service ServiceID
	key     sidrKey
	tid     uint64
	label   uint32
	pending *Send // of ours the request, of a peer's the answer
	resent  int
	timer   timer
}

type sidrKey struct {
	peer netip.Addr
	id   CommID
}

func (a *Agent) newSIDR(to netip.Addr) *sidr {
	s := &sidr{id: a.newID(), to: to}
	s.timer.fire = func(now mono.Time) { a.expireSIDR(now, s) }
	a.sidrs[s.id] = s
	return s
}

// Resolve asks which datagram queue pair serves a service id and returns the id of
// the question. SIDRReply or Unreachable follows. Errors: *[ParamError],
// *[LimitError].
func (a *Agent) Resolve(now mono.Time, p ResolveParams) (CommID, error) {
	if err := a.checkPeer(&p.Peer); err != nil {
		return 0, err
	}
	if !datagram(p.Service) {
		return 0, &ParamError{Param: "Service", Value: p.Service, Allowed: "one for datagrams; Connect asks for connections"}
	}
	m := &SIDRREQ{PKey: p.PKey, Service: p.Service}
	if err := checkLen("Private", p.Private, room(p.Service, len(m.Private))); err != nil {
		return 0, err
	}
	if !a.roomForSIDR() {
		return 0, &LimitError{Limit: "MaxSIDR", Max: a.cfg.MaxSIDR}
	}
	setDefault(&m.PKey, 0xFFFF)
	setDefault(&p.SrcPort, 0xC000|uint16(a.cfg.Rand()))
	s := a.newSIDR(p.Peer)
	s.client, s.service, s.label = true, p.Service, a.flowLabel(p.Service, p.SrcPort)
	m.TID, m.RequestID = a.tid(s.id), s.id
	a.putPrivate(m.Private[:], p.Service, p.SrcPort, p.Peer.WithZone(""), p.Private)
	a.keepSIDR(s, m)
	a.timers.arm(&s.timer, now.Add(a.wait(Millis(sidrTimeout), 0)))
	return s.id, nil
}

// AnswerSIDR answers a request that SIDRRequest reported. The answer is given
// again to duplicates for a while. Errors: *[IDError], *[ParamError].
func (a *Agent) AnswerSIDR(now mono.Time, id CommID, p SIDRAnswer) error {
	s := a.sidrs[id]
	if s == nil || s.client || s.pending != nil {
		return &IDError{Command: "AnswerSIDR", ID: id}
	}
	m := &SIDRREP{Header: Header{TID: s.tid}, RequestID: s.key.id, Status: p.Status, Service: s.service}
	if err := checkLen("Private", p.Private, len(m.Private)); err != nil {
		return err
	}
	if p.Status == SIDROK {
		if !usableQPN(p.QPN) {
			return &ParamError{Param: "QPN", Value: p.QPN, Allowed: "2 to 0xfffffe"}
		}
		setDefault(&p.QKey, DefaultQKey)
		m.QPN, m.QKey = p.QPN, p.QKey
	}
	copy(m.Private[:], p.Private)
	a.busy(s.key.peer, -1)
	a.keepSIDR(s, m)
	a.answered = append(a.answered, s.id)
	a.timers.arm(&s.timer, now.Add(Millis(sidrHold)))
	return nil
}

// keepSIDR sends a message and remembers it.
func (a *Agent) keepSIDR(s *sidr, m Message) {
	s.pending = &Send{To: s.to, FlowLabel: s.label}
	m.Append(s.pending.MAD[:0])
	a.queue(s.pending)
}

// onSIDRREQ: a peer asks for a datagram queue pair.
func (a *Agent) onSIDRREQ(now mono.Time, src netip.Addr, m *SIDRREQ) {
	key := sidrKey{src.WithZone(""), m.RequestID}
	if s := a.bySIDR[key]; s != nil {
		a.stats.Duplicates++
		if s.pending != nil {
			a.stats.Resent++
			a.queue(s.pending)
		}
		return
	}
	r := Request{Service: m.Service, PKey: m.PKey}
	if _, ok := a.listeners[m.Service]; !ok || !datagram(m.Service) {
		a.refuseSIDR(src, m, SIDRUnsupported)
		return
	}
	private, reason, _ := a.source(&r, src, m.Private[:])
	if reason != 0 {
		a.refuseSIDR(src, m, SIDRRejected)
		return
	}
	if a.perPeer[key.peer] >= a.cfg.MaxHalfOpenPerPeer || !a.roomForSIDR() {
		a.stats.RefusedLimit++
		a.refuseSIDR(src, m, SIDRNoQP)
		return
	}
	s := a.newSIDR(src)
	s.key, s.service, s.tid, s.label = key, m.Service, m.TID, a.flowLabel(m.Service, r.Src.Port())
	a.bySIDR[key] = s
	a.busy(key.peer, 1)
	a.timers.arm(&s.timer, now.Add(Millis(sidrHold)))
	a.event(Event{Kind: EventSIDRRequest, ID: s.id, Peer: src, Request: r, Private: private})
}

// roomForSIDR reports whether one more exchange may begin; the oldest answers are
// forgotten for it.
func (a *Agent) roomForSIDR() bool {
	for len(a.sidrs) >= a.cfg.MaxSIDR && len(a.answered) > 0 {
		a.dropSIDR(a.sidrs[a.answered[0]])
	}
	return len(a.sidrs) < a.cfg.MaxSIDR
}

func (a *Agent) refuseSIDR(src netip.Addr, m *SIDRREQ, status SIDRStatus) {
	a.stats.Refused++
	a.post(src, 0, 0, &SIDRREP{Header: Header{TID: m.TID}, RequestID: m.RequestID, Status: status, Service: m.Service})
}

// onSIDRREP: the answer to a question of ours.
func (a *Agent) onSIDRREP(_ mono.Time, src netip.Addr, m *SIDRREP) {
	s := a.sidrs[m.RequestID]
	if s == nil || !s.client || s.to.WithZone("") != src.WithZone("") {
		a.stats.Ignored++
		return
	}
	if m.Status == SIDROK && (m.Service != s.service || !usableQPN(m.QPN)) {
		a.stats.Ignored++
		return
	}
	e := Event{Kind: EventSIDRReply, ID: s.id, Peer: s.to, Status: m.Status, Private: m.Private[:]}
	e.Info = m.Info[:min(int(m.InfoLen), len(m.Info))]
	if m.Status == SIDROK {
		e.QPN, e.QKey = m.QPN, m.QKey
	}
	a.dropSIDR(s)
	a.event(e)
}

// expireSIDR repeats or gives up a question of ours, forgets a peer's.
func (a *Agent) expireSIDR(now mono.Time, s *sidr) {
	switch {
	case !s.client:
		a.dropSIDR(s)
	case s.resent < sidrRetries:
		s.resent++
		a.stats.Resent++
		a.queue(s.pending)
		a.timers.arm(&s.timer, now.Add(a.wait(Millis(sidrTimeout), s.resent)))
	default:
		a.dropSIDR(s)
		a.event(Event{Kind: EventUnreachable, ID: s.id, Peer: s.to})
	}
}

func (a *Agent) dropSIDR(s *sidr) {
	a.timers.stop(&s.timer)
	delete(a.sidrs, s.id)
	a.ids.retire(s.id)
	if s.client {
		return
	}
	delete(a.bySIDR, s.key)
	if s.pending == nil {
		a.busy(s.key.peer, -1)
		return
	}
	// Answers are forgotten in the order in which they were given, unless one is
	// destroyed: it need not be the first.
	for i, id := range a.answered {
		if id == s.id {
			a.answered = append(a.answered[:i], a.answered[i+1:]...)
			break
		}
	}
}
