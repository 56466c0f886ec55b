package hixl

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/gohixl/hixl/internal/connmgr"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/roce/cm"
)

// DefaultQKey is the Q_Key of librdmacm's datagram queue pairs.
const DefaultQKey = cm.DefaultQKey

// ResolveOptions say how to ask for a datagram queue pair.
type ResolveOptions struct {
	// PrivateData tells the other application something, up to [MaxResolveData]
	// bytes, padded with zeros.
	PrivateData []byte
	// LocalPort is the port to ask from; 0 is a random one of 49152 to 65535.
	LocalPort uint16
	// Resolver looks names up; nil is net.DefaultResolver.
	Resolver *net.Resolver
}

// Resolved is a datagram queue pair of another NIC.
type Resolved struct {
	// To is what [SendWR] needs to send there.
	To Destination
	// RemoteAddr is the address and port that answered.
	RemoteAddr netip.AddrPort
	// PrivateData is what the other application said, padded with zeros to
	// [MaxAnswerData] bytes.
	PrivateData []byte
}

// ResolveUD asks which datagram queue pair serves address, "host:port" of RDMA CM's
// UDP port space, as librdmacm's rdma_connect does with datagram ids (SIDR). There
// is no connection: nobody is told when either side ends. ctx bounds it; without a
// deadline a silent peer is given up after about a minute. The error is a
// *[ConnError].
func (n *NIC) ResolveUD(ctx context.Context, address string, o ResolveOptions) (*Resolved, error) {
	fail := func(err error) (*Resolved, error) { return nil, &ConnError{Op: "resolve", Addr: address, Err: err} }
	peers, err := n.lookup(ctx, o.Resolver, "udp", address)
	if err != nil {
		return fail(err)
	}
	q, err := n.StartResolveUD(peers[0], o)
	if err != nil {
		return nil, err
	}
	select {
	case <-q.Done():
		return q.Result()
	case <-ctx.Done():
		q.Cancel()
		return fail(ctx.Err())
	}
}

// Resolving is a question for a datagram queue pair that has been asked.
type Resolving struct {
	cm     *connmgr.Manager
	id     cm.CommID
	remote netip.AddrPort
	done   chan struct{}

	once sync.Once
	got  *Resolved // set before done is closed
	err  error
}

// StartResolveUD asks and returns at once. It is for those who drive a stepped NIC.
// The error is a *[ConnError].
func (n *NIC) StartResolveUD(peer netip.AddrPort, o ResolveOptions) (*Resolving, error) {
	fail := func(err error) (*Resolving, error) {
		return nil, &ConnError{Op: "resolve", Addr: peer.String(), Err: closedOr(err)}
	}
	if len(o.PrivateData) > MaxResolveData {
		return fail(tooLong(len(o.PrivateData), MaxResolveData))
	}
	m, err := n.manager()
	if err != nil {
		return fail(err)
	}
	q := &Resolving{cm: m, remote: netip.AddrPortFrom(peer.Addr().WithZone(""), peer.Port()), done: make(chan struct{})}
	q.id, err = m.Resolve(cm.ResolveParams{
		Peer: q.remote.Addr(), Service: cm.PortSpaceUDP.Service(peer.Port()), SrcPort: o.LocalPort, Private: o.PrivateData,
	}, resolveHandler{q})
	if err != nil {
		return fail(err)
	}
	return q, nil
}

// Done is closed when there is an answer, or none will come.
func (q *Resolving) Done() <-chan struct{} { return q.done }

// Result returns the answer after Done. The error is a *[ConnError].
func (q *Resolving) Result() (*Resolved, error) {
	<-q.done
	return q.got, q.err
}

// Cancel ends the question. Result then has context.Canceled, unless it is
// answered.
func (q *Resolving) Cancel() {
	q.cm.Forget(q.id)
	q.end(nil, context.Canceled)
}

func (q *Resolving) end(got *Resolved, err error) {
	q.once.Do(func() {
		q.got = got
		if err != nil {
			q.err = &ConnError{Op: "resolve", Addr: q.remote.String(), Err: err}
		}
		close(q.done)
	})
}

// resolveHandler keeps the handler's methods out of Resolving's.
type resolveHandler struct{ *Resolving }

func (h resolveHandler) Event(e *cm.Event) {
	switch {
	case e.Kind == cm.EventUnreachable:
		h.end(nil, ErrUnreachable)
	case e.Kind != cm.EventSIDRReply:
	case e.Status != cm.SIDROK:
		h.end(nil, &DeclinedError{Peer: h.remote, Status: e.Status, PrivateData: e.Private})
	default:
		h.end(&Resolved{
			To: Destination{Addr: h.remote.Addr(), QPN: e.QPN, QKey: e.QKey}, RemoteAddr: h.remote, PrivateData: e.Private,
		}, nil)
	}
}

func (h resolveHandler) Closed() { h.end(nil, errNICClosed) }

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

	mu       sync.Mutex
	changed  chan struct{} // closed at the next change; guarded by mu, as all below
	requests []*UDRequest
	err      error
}

// ListenUD listens on address as Listen does, in the port space of datagrams. The
// error is a *[ConnError].
func (n *NIC) ListenUD(ctx context.Context, address string, cfg UDConfig) (*UDListener, error) {
	l := &UDListener{cfg: cfg, changed: make(chan struct{})}
	if l.cfg.Backlog <= 0 {
		l.cfg.Backlog = DefaultBacklog
	}
	err := checkAnswer(cfg.QP, cfg.PrivateData)
	if err == nil {
		l.cm, l.service, l.addr, err = n.listen(ctx, cfg.Resolver, cm.PortSpaceUDP, address, udListenHandler{l})
	}
	if err != nil {
		return nil, &ConnError{Op: "listen", Addr: address, Err: err}
	}
	return l, nil
}

// checkAnswer refuses what cannot be told.
func checkAnswer(q *QP, private []byte) error {
	switch {
	case len(private) > MaxAnswerData:
		return tooLong(len(private), MaxAnswerData)
	case q != nil && q.kind != UD:
		return &nic.ConfigError{Field: "QP", Value: q.kind, Allowed: "UD"}
	case q != nil && q.qkey == 0:
		return &nic.ConfigError{Field: "QP", Value: "Q_Key 0", Allowed: "a Q_Key other than 0, such as DefaultQKey: 0 cannot be told"}
	}
	return nil
}

// Addr returns the NIC's address and the port.
func (l *UDListener) Addr() netip.AddrPort { return l.addr }

// AcceptRequest waits for a request, when no queue pair answers by itself. A
// context that has ended makes it a poll. The error is a *[ConnError], which
// unwraps to net.ErrClosed after Close.
func (l *UDListener) AcceptRequest(ctx context.Context) (*UDRequest, error) {
	for {
		l.mu.Lock()
		if len(l.requests) > 0 {
			r := l.requests[0]
			l.requests = l.requests[1:]
			l.mu.Unlock()
			return r, nil
		}
		err, changed := l.err, l.changed
		l.mu.Unlock()
		if err == nil {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		return nil, &ConnError{Op: "accept", Addr: l.addr.String(), Err: err}
	}
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
	if l.err != nil {
		return nil
	}
	rest := l.requests
	l.err, l.requests = err, nil
	close(l.changed)
	l.changed = make(chan struct{})
	return rest
}

func (l *UDListener) add(r *UDRequest) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || len(l.requests) >= l.cfg.Backlog {
		return false
	}
	l.requests = append(l.requests, r)
	close(l.changed)
	l.changed = make(chan struct{})
	return true
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
	case !h.add(r):
		_ = r.answer(cm.SIDRAnswer{Status: cm.SIDRNoQP})
	}
}

func (h udListenHandler) Closed() { h.shut(errNICClosed) }

// UDRequest is somebody's question for a datagram queue pair. It waits a minute.
type UDRequest struct {
	listener *UDListener
	id       cm.CommID
	remote   netip.AddrPort
	private  []byte
}

// PrivateData returns what the other application says, padded with zeros to
// [MaxResolveData] bytes.
func (r *UDRequest) PrivateData() []byte { return r.private }

// RemoteAddr returns the address and port that ask.
func (r *UDRequest) RemoteAddr() netip.AddrPort { return r.remote }

// LocalAddr returns the listener's address.
func (r *UDRequest) LocalAddr() netip.AddrPort { return r.listener.addr }

// Accept answers with a datagram queue pair and up to [MaxAnswerData] bytes. The
// error is a *[ConnError].
func (r *UDRequest) Accept(q *QP, privateData []byte) error {
	if q == nil {
		return r.fail(&nic.ConfigError{Field: "QP", Value: "missing", Allowed: "a datagram queue pair"})
	}
	if err := checkAnswer(q, privateData); err != nil {
		return r.fail(err)
	}
	return r.answer(cm.SIDRAnswer{QPN: q.QPN(), QKey: q.qkey, Private: privateData})
}

// Reject refuses with up to [MaxAnswerData] bytes of reasons. The error is a
// *[ConnError].
func (r *UDRequest) Reject(privateData []byte) error {
	if err := checkAnswer(nil, privateData); err != nil {
		return r.fail(err)
	}
	return r.answer(cm.SIDRAnswer{Status: cm.SIDRRejected, Private: privateData})
}

func (r *UDRequest) answer(a cm.SIDRAnswer) error {
	if err := r.listener.cm.AnswerSIDR(r.id, a); err != nil {
		return r.fail(closedOr(err))
	}
	return nil
}

func (r *UDRequest) fail(err error) error {
	return &ConnError{Op: "answer", Addr: r.remote.String(), Err: err}
}
