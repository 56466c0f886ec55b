package hixl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/gohixl/hixl/internal/connmgr"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/roce/cm"
)

// DefaultBacklog is how many requests wait for Accept.
const DefaultBacklog = 128

// ListenConfig describes a listener.
type ListenConfig struct {
	// Accept is how [Listener.Accept] accepts: QPConfig at least. It need not be
	// given to those who only use [Listener.AcceptRequest].
	Accept AcceptOptions
	// Backlog is how many requests may wait to be taken, default
	// [DefaultBacklog]. Further ones are refused with [RejectNoResources].
	Backlog int
	// Resolver looks names up; nil is net.DefaultResolver.
	Resolver *net.Resolver

	notify func() // told of a request, with the listener's lock held
}

// Listener waits for connections on a port of RDMA CM's TCP port space, which has
// nothing to do with the ports of TCP itself.
type Listener struct {
	nic     *NIC
	cm      *connmgr.Manager
	service cm.ServiceID
	addr    netip.AddrPort
	accept  AcceptOptions
	backlog int
	notify  func() // set once

	waiting[*Request]
	ready []*Conn // accepted for Accept, established, not taken; guarded by mu
}

// Listen listens on address, "host:port" as in package net: no host, an
// unspecified one, or the NIC's own; port 0 chooses a free one. ctx bounds looking
// up a name. The error is a *[ConnError], which unwraps to [ErrListening] when the
// port is taken.
func (n *NIC) Listen(ctx context.Context, address string, cfg ListenConfig) (*Listener, error) {
	l := &Listener{nic: n, cm: n.cm, accept: cfg.Accept, backlog: cfg.Backlog, notify: cfg.notify}
	l.changed = make(chan struct{})
	if l.backlog <= 0 {
		l.backlog = DefaultBacklog
	}
	if cfg.Accept.QP != nil {
		return nil, &ConnError{Op: "listen", Addr: address, Err: &nic.ConfigError{
			Field: "ListenConfig.Accept.QP", Value: cfg.Accept.QP.QPN(), Allowed: "nothing: each connection has a queue pair of its own, from QPConfig",
		}}
	}
	bind := func(s cm.ServiceID, addr netip.AddrPort) { l.service, l.addr = s, addr }
	if err := n.listen(ctx, cfg.Resolver, cm.PortSpaceTCP, address, listenHandler{l}, bind); err != nil {
		return nil, &ConnError{Op: "listen", Addr: address, Err: err}
	}
	return l, nil
}

// listen gives what arrives for an address to a handler. bind is told what the
// handler listens on, before anything can arrive.
func (n *NIC) listen(
	ctx context.Context, r *net.Resolver, space cm.PortSpace, address string, h connmgr.Handler,
	bind func(cm.ServiceID, netip.AddrPort),
) error {
	port, err := n.ownPort(ctx, r, address)
	if err != nil {
		return err
	}
	wanted := port
	for tries := 0; ; tries++ {
		if wanted == 0 {
			port = ephemeral()
		}
		s := space.Service(port)
		bind(s, netip.AddrPortFrom(n.Address(), port))
		switch err := n.cm.Listen(s, h); {
		case err == nil:
			return nil
		case wanted != 0 || tries >= maxPortTries || !errors.Is(err, ErrListening):
			return closedOr(err)
		}
	}
}

// maxPortTries bounds the search for a free port.
const maxPortTries = 1000

// Addr returns the NIC's address and the port.
func (l *Listener) Addr() netip.AddrPort { return l.addr }

// AcceptRequest waits for a request and returns it undecided, for those who choose
// by its private data. A context that has ended makes it a poll: a request that
// waits is returned. The error is a *[ConnError], which unwraps to net.ErrClosed
// after Close, to [ErrClosed] too when the NIC was closed, to a *[DeviceError] when
// its transport failed, or to the context's.
func (l *Listener) AcceptRequest(ctx context.Context) (*Request, error) {
	r, err := l.take(ctx)
	if err != nil {
		return nil, l.failed(err)
	}
	return r, nil
}

func (l *Listener) failed(err error) error {
	return &ConnError{Op: "accept", Addr: l.addr.String(), Err: err}
}

// Accept waits for a connection, made as ListenConfig.Accept says, and returns it
// established. Requests are accepted while somebody waits here; those whose peer
// gives up meanwhile are passed over. A context that has ended makes it a poll:
// requests that wait are accepted, a connection that is established is returned.
// The error is a *[ConnError], which unwraps to net.ErrClosed after Close, to
// [ErrClosed] too when the NIC was closed, to a *[DeviceError] when its transport
// failed, to the context's, or to what is wrong with the options: at once where they tell, else
// when there is a request, which is refused.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	if err := l.accept.check(); err != nil {
		return nil, l.failed(err)
	}
	for {
		l.mu.Lock()
		if len(l.ready) > 0 {
			c := l.ready[0]
			l.ready = l.ready[1:]
			l.mu.Unlock()
			return c, nil
		}
		requests := l.queue
		l.queue = nil
		err, changed := l.err, l.changed
		l.mu.Unlock()
		for i, r := range requests {
			if _, err := r.begin(l.accept, l); err != nil && !r.over() {
				_ = r.refuse(cm.RejectParams{Reason: cm.ReasonNoResources})
				l.putBack(requests[i+1:])
				return nil, err
			}
		}
		if err := awaitChange(ctx, err, changed); err != nil {
			return nil, l.failed(err)
		}
	}
}

// check finds the mistakes in options that are there before any request.
func (o *AcceptOptions) check() error {
	if _, err := o.QPConfig.resolve(); err != nil {
		return err
	}
	_, err := o.params(false)
	return err
}

// Close stops listening: requests that wait are refused, connections that Accept
// has made but nobody has taken are closed. Those that were taken stay. Closing
// twice is fine.
func (l *Listener) Close() error {
	l.cm.Unlisten(l.service)
	l.shut(net.ErrClosed, true)
	return nil
}

func (l *Listener) shut(err error, tell bool) {
	l.mu.Lock()
	requests, ready := l.end(err), l.ready
	l.ready = nil
	l.mu.Unlock()
	if !tell {
		return
	}
	for _, r := range requests {
		_ = r.refuse(cm.RejectParams{Reason: cm.ReasonServiceID}) // refused if it is over
	}
	for _, c := range ready {
		_ = c.Close()
	}
}

// deliver gives an established connection to Accept; false if the listener is
// closed.
func (l *Listener) deliver(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return false
	}
	l.ready = append(l.ready, c)
	l.wake()
	return true
}

// putBack returns requests to the head of the queue.
func (l *Listener) putBack(rs []*Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(append([]*Request(nil), rs...), l.queue...)
	if len(rs) > 0 {
		l.wake()
	}
}

// listenHandler keeps the handler's methods out of Listener's.
type listenHandler struct{ *Listener }

func (h listenHandler) Event(e *cm.Event) {
	if e.Kind != cm.EventConnectRequest {
		return
	}
	r := newRequest(h.Listener, e)
	if !h.cm.Bind(e.ID, requestHandler{r}) || h.add(r, h.backlog, h.notify) {
		return
	}
	_ = r.refuse(cm.RejectParams{Reason: cm.ReasonNoResources})
}

func (h listenHandler) Closed(why error) { h.shut(closedOr(why), false) }

// String returns the address.
func (l *Listener) String() string { return fmt.Sprintf("hixl listener on %v", l.addr) }
