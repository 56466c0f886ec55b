package hixl

import (
	"context"
	"net"
	"net/netip"

	"github.com/gohixl/hixl/internal/connmgr"
	"github.com/gohixl/hixl/roce/cm"
)

// UDConfig describes a listener for datagrams.
type UDConfig struct {
	// QP, if given, answers every request by itself: its number and Q_Key are
	// told, with PrivateData of up to [MaxAnswerData] bytes. Without it requests
	// wait for AcceptRequest.
	QP          *QP
	PrivateData []byte
	// Backlog is how many requests may wait, default [DefaultBacklog].
	Backlog int
	// Resolver looks names up; nil is net.DefaultResolver.
	Resolver *net.Resolver
}

// UDListener tells those who ask which datagram queue pair serves a port of RDMA
// CM's UDP port space.
type UDListener struct {
	cm      *connmgr.Manager
	service cm.ServiceID
	addr    netip.AddrPort
	cfg     UDConfig

	waiting[*UDRequest]
}

// ListenUD listens on address as Listen does, in the port space of datagrams. The
// error is a *[ConnError].
func (n *NIC) ListenUD(ctx context.Context, address string, cfg UDConfig) (*UDListener, error) {
	l := &UDListener{cm: n.cm, cfg: cfg}
	l.changed = make(chan struct{})
	if l.cfg.Backlog <= 0 {
		l.cfg.Backlog = DefaultBacklog
	}
	err := checkAnswer(cfg.QP, cfg.PrivateData)
	if err == nil {
		bind := func(s cm.ServiceID, addr netip.AddrPort) { l.service, l.addr = s, addr }
		err = n.listen(ctx, cfg.Resolver, cm.PortSpaceUDP, address, udListenHandler{l}, bind)
	}
	if err != nil {
		return nil, &ConnError{Op: "listen", Addr: address, Err: err}
	}
	return l, nil
}

// Addr returns the NIC's address and the port.
func (l *UDListener) Addr() netip.AddrPort { return l.addr }

// AcceptRequest waits for a request, when no queue pair answers by itself. A
// context that has ended makes it a poll. The error is a *[ConnError], as of
// [Listener.AcceptRequest].
func (l *UDListener) AcceptRequest(ctx context.Context) (*UDRequest, error) {
	r, err := l.take(ctx)
	if err != nil {
		return nil, &ConnError{Op: "accept", Addr: l.addr.String(), Err: err}
	}
	return r, nil
}

// Close stops listening and refuses the requests that wait. Closing twice is fine.
func (l *UDListener) Close() error {
	l.cm.Unlisten(l.service)
	for _, r := range l.shut(net.ErrClosed) {
		_ = r.Reject(nil) // refused if it is over
	}
	return nil
}

func (l *UDListener) shut(err error) []*UDRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end(err)
}

// udListenHandler keeps the handler's methods out of UDListener's.
type udListenHandler struct{ *UDListener }

func (h udListenHandler) Event(e *cm.Event) {
	if e.Kind != cm.EventSIDRRequest {
		return
	}
	r := &UDRequest{listener: h.UDListener, id: e.ID, remote: netip.AddrPortFrom(e.Request.Src.Addr().WithZone(""), e.Request.Src.Port()), private: e.Private}
	switch {
	case h.cfg.QP != nil:
		_ = r.Accept(h.cfg.QP, h.cfg.PrivateData) // refused if it is over
	case !h.add(r, h.cfg.Backlog, nil):
		_ = r.answer(cm.SIDRAnswer{Status: cm.SIDRNoQP})
	}
}

func (h udListenHandler) Closed(why error) { h.shut(closedOr(why)) }
