package hixl

import (
	"net/netip"
	"sync"

	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/roce/cm"
)

// Request is a peer's wish for a connection, to be accepted or rejected soon: it
// waits some seconds, told of it a minute, and then gives up.
type Request struct {
	listener *Listener
	id       cm.CommID
	offer    cm.Request
	private  []byte
	hixl     bool
	small    bool

	mu      sync.Mutex
	decided bool  // guarded by mu
	gone    error // guarded by mu; why it is over
}

func newRequest(l *Listener, e *cm.Event) *Request {
	r := &Request{listener: l, id: e.ID, offer: e.Request}
	r.private, r.hixl, r.small = untag(e.Private)
	return r
}

// AcceptOptions say how to accept. QP or QPConfig must be given.
type AcceptOptions struct {
	// QPConfig describes the queue pair to make. Its Type is the request's.
	QPConfig QPConfig
	// QP is a queue pair in INIT to use instead, which stays the caller's. Not for
	// [ListenConfig].
	QP *QP
	// Receives are posted before the answer leaves, so that the peer finds them.
	Receives []RecvWR
	// Connect holds this side's choices. MTU, Retries, TrafficClass and FlowLabel
	// are the request's; RNRRetries is what the peer may do to us. The default
	// Timeout is what the request proposes.
	Connect ConnectOptions
	// PrivateData answers the peer's application, up to [MaxAcceptData] bytes, 188
	// of which leave this package's mark in place. Peers that do not run this
	// package get it padded with zeros.
	PrivateData []byte

	notify func() // see Conn.notify
}

// Offer is what a request says of itself.
type Offer struct {
	// Type is the service, RC or UC. MTU is the path MTU in bytes.
	Type Type
	MTU  int
	// MaxReads is how many READs and atomics the peer serves at a time, PeerReads
	// how many it wants in flight itself: limits of what is agreed.
	MaxReads, PeerReads int
	// Retries and RNRRetries are what it allows this side.
	Retries, RNRRetries int
	// QPN is its queue pair's number; SRQ says that receives are shared there.
	QPN QPN
	SRQ bool
	// TrafficClass and FlowLabel mark the packets of the connection.
	TrafficClass uint8
	FlowLabel    uint32
	// Hixl says that the peer runs this package.
	Hixl bool
}

// Offer returns what the request says of itself.
func (r *Request) Offer() Offer {
	o := &r.offer
	return Offer{
		Type: Type(o.Transport), MTU: o.MTU.Bytes(), MaxReads: int(o.MaxRead), PeerReads: int(o.MaxDestRead),
		Retries: int(o.RetryCount), RNRRetries: int(o.RNRRetry), QPN: o.QPN, SRQ: o.SRQ,
		TrafficClass: o.TrafficClass, FlowLabel: o.FlowLabel, Hixl: r.hixl,
	}
}

// PrivateData returns what the peer's application says, see [Conn.PrivateData].
func (r *Request) PrivateData() []byte { return r.private }

// RemoteAddr returns the address and port that the peer dials from.
func (r *Request) RemoteAddr() netip.AddrPort {
	return netip.AddrPortFrom(r.offer.Src.Addr().WithZone(""), r.offer.Src.Port())
}

// LocalAddr returns the listener's address.
func (r *Request) LocalAddr() netip.AddrPort { return r.listener.addr }

// Accept makes the connection and returns at once: its queue pair is ready, and may
// be used before the connection is established. The error is a *[ConnError]; a
// request that is not over can still be accepted otherwise, or rejected.
func (r *Request) Accept(o AcceptOptions) (*Conn, error) { return r.begin(o, nil) }

// begin accepts, for a listener that wants to be told or for the application.
func (r *Request) begin(o AcceptOptions, l *Listener) (*Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.accept(&o, l)
	if err != nil {
		return nil, &ConnError{Op: "accept", Addr: r.RemoteAddr().String(), Err: closedOr(err)}
	}
	r.decided = true
	return c, nil
}

func (r *Request) accept(o *AcceptOptions, l *Listener) (*Conn, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	p, err := o.params(r.hixl)
	if err != nil {
		return nil, err
	}
	kind := Type(r.offer.Transport)
	o.QPConfig.Type = kind
	q, owned, err := r.listener.nic.queuePair(o.QP, &o.QPConfig)
	if err != nil {
		return nil, err
	}
	c := newConn(r.listener.cm, q)
	c.owned, c.options, c.listener, c.notify = owned, o.Connect, l, o.notify
	c.id, c.remote, c.local = r.id, r.RemoteAddr(), r.LocalAddr()
	c.private, c.hixl = r.private, r.hixl
	p.QPN, p.MaxDestRead, p.SRQ = q.QPN(), cmCount(q.reads), q.srq
	if err := c.answer(p, o.Receives, kind, r.small); err != nil {
		if owned {
			_ = q.Close()
		}
		return nil, err
	}
	return c, nil
}

// answer readies the queue pair, then says so (§5.7).
func (c *Conn) answer(p cm.AcceptParams, receives []RecvWR, kind Type, small bool) error {
	if err := c.take(kind); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.PostRecv(receives...)
	if err == nil {
		var params cm.QPParams
		if params, err = c.cm.Prepare(c.id, p); err == nil {
			if err = c.QP.join(&params, &c.options, small); err == nil {
				c.up.Store(true)
				c.cm.Bind(c.id, connHandler{c})
				err = c.cm.Accept(c.id)
			}
			if err != nil {
				_ = c.cm.Reject(c.id, cm.RejectParams{Reason: cm.ReasonNoResources}) // refused if it is over
			}
		}
	}
	if err != nil {
		c.end(c.failure(err))
	}
	return err
}

// params translates the options.
func (o *AcceptOptions) params(tag bool) (p cm.AcceptParams, err error) {
	if len(o.PrivateData) > MaxAcceptData {
		return p, tooLong(len(o.PrivateData), MaxAcceptData)
	}
	if err := o.Connect.check(); err != nil {
		return p, err
	}
	c := &o.Connect
	p = cm.AcceptParams{
		MaxRead: cmCount(orDefault(c.MaxReads, DefaultReads)), RNRRetry: cmCount(orDefault(c.RNRRetries, DefaultRetries)),
		MinRNRTimer: cmCount(orDefault(c.RNRTimer, DefaultRNRTimer)), Private: o.PrivateData,
	}
	if tag {
		p.Private = tagged(o.PrivateData, MaxAcceptData)
	}
	return p, nil
}

// Reject refuses the connection, and tells the peer's application why in up to
// [MaxRejectData] bytes. The error is a *[ConnError].
func (r *Request) Reject(privateData []byte) error {
	if len(privateData) > MaxRejectData {
		return &ConnError{Op: "reject", Addr: r.RemoteAddr().String(), Err: tooLong(len(privateData), MaxRejectData)}
	}
	return r.refuse(cm.RejectParams{Private: privateData})
}

func (r *Request) refuse(p cm.RejectParams) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.open()
	if err == nil {
		err = r.listener.cm.Reject(r.id, p)
	}
	if err != nil {
		return &ConnError{Op: "reject", Addr: r.RemoteAddr().String(), Err: closedOr(err)}
	}
	r.decided = true
	return nil
}

// open returns nil if the request waits for a decision. r.mu is held.
func (r *Request) open() error {
	switch {
	case r.gone != nil:
		return r.gone
	case r.decided:
		return &nic.ConfigError{Field: "Request", Value: "decided", Allowed: "one decision"}
	}
	return nil
}

// over reports whether the peer has gone.
func (r *Request) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone != nil
}

// requestHandler keeps the handler's methods out of Request's.
type requestHandler struct{ *Request }

func (h requestHandler) Event(e *cm.Event) {
	if err := e.Err(); err != nil {
		h.end(err)
		h.listener.remove(h.Request)
	}
}

func (h requestHandler) Closed(why error) { h.end(closedOr(why)) }

func (r *Request) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone == nil {
		r.gone = err
	}
}
