package hixl

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/connmgr"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
)

// Conn is a queue pair that RDMA connection management has joined with a peer's,
// or is about to. It ends when either side disconnects, when the queue pair fails,
// or by Close of the queue pair; then the queue pair is in the error state, where
// everything outstanding on it is flushed, until Close.
//
// The peer is told of every end. When it has agreed, or is given up, the number of
// the queue pair rests for the time that packets may live (TIMEWAIT), closed or
// not, before the NIC uses it again.
type Conn struct {
	*QP

	cm            *connmgr.Manager
	local, remote netip.AddrPort
	active        bool
	owned         bool        // the queue pair was made for this connection
	up            atomic.Bool // the peer knows this queue pair: it has been joined
	options       ConnectOptions
	request       cm.ConnectParams // of an active one
	listener      *Listener        // that gives it to Accept when it is established
	established   chan struct{}
	done          chan struct{}
	notify        func() // told when live, ended or gone changes, with mu held; set once

	mu      sync.Mutex
	id      cm.CommID // guarded by mu, as all below
	live    bool      // established
	ended   bool
	gone    bool // the peer has said that its queue pair takes nothing any more
	hixl    bool
	private []byte
	err     error
}

// status is what a connection's owner wants to know of it.
type connStatus struct {
	live, ended, gone bool
	err               error
}

func (c *Conn) status() connStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return connStatus{c.live, c.ended, c.gone, c.err}
}

// tell notifies the owner. c.mu is held.
func (c *Conn) tell() {
	if c.notify != nil {
		c.notify()
	}
}

func newConn(m *connmgr.Manager, q *QP) *Conn {
	return &Conn{QP: q, cm: m, established: make(chan struct{}), done: make(chan struct{})}
}

// RemoteAddr returns the peer's address and port: that of its listener, or the one
// it dialed from.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }

// LocalAddr returns this side's.
func (c *Conn) LocalAddr() netip.AddrPort { return c.local }

// PrivateData returns what the peer said when it dialed or accepted. A peer that
// does not run this package pads it with zeros to its full size, 56 or 196 bytes,
// so applications bring their own length. Before a dialed connection is
// established it is nil. It must not be changed.
func (c *Conn) PrivateData() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.private
}

// forgetPrivate lets go of the message that PrivateData lies in.
func (c *Conn) forgetPrivate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.private = nil
}

// IsHixl reports whether the peer has said that it runs this package. Before a
// dialed connection is established it is false.
func (c *Conn) IsHixl() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hixl
}

// Established is closed when the connection is established: a dialed one by the
// peer's answer, an accepted one when the peer is known to have ours. An accepted
// connection may be used before that.
func (c *Conn) Established() <-chan struct{} { return c.established }

// WaitEstablished waits for that. The error is that of Err when the connection
// ends instead, or the context's.
func (c *Conn) WaitEstablished(ctx context.Context) error {
	select {
	case <-c.established:
		return nil
	case <-c.done:
		return c.Err()
	default:
	}
	select {
	case <-c.established:
		return nil
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Done is closed when the connection has ended, by whatever side and reason.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns nil before Done, then why: a *[DisconnectedError], or, if it never
// was established, a *[ConnError].
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Disconnect ends the connection in order: the queue pair goes to the error state,
// which flushes what is outstanding, and the peer is told until it agrees. The
// error is the context's if it ends first; the peer is told nevertheless. Who
// needs the outstanding work done waits for its completions before. The queue pair
// is still to be closed.
func (c *Conn) Disconnect(ctx context.Context) error {
	c.hangUp(false)
	select {
	case <-c.done:
		return nil
	default:
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return &ConnError{Op: "disconnect", Addr: c.remote.String(), Err: ctx.Err()}
	}
}

// hangUp begins the end. A forgotten connection is over at once: nobody waits for
// the peer's answer.
func (c *Conn) hangUp(forget bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	live := c.live
	c.fail()
	c.cm.Disconnect(c.id)
	if forget || !live {
		c.end(&DisconnectedError{Peer: c.remote, Local: true})
	}
}

// leave ends the connection because its queue pair is closed or reset, which needs
// no flush.
func (c *Conn) leave() {
	c.up.Store(false)
	c.hangUp(true)
}

// abandon ends a connection that is not wanted any more, with its queue pair if it
// is the connection's own.
func (c *Conn) abandon() {
	c.hangUp(true)
	if c.owned {
		_ = c.QP.Close()
	}
}

// fail moves the queue pair to the error state, unless no peer has ever known it.
func (c *Conn) fail() {
	if c.up.Load() {
		_ = c.q.Modify(&qp.Attr{State: qp.Err}, qp.MaskState) // refused when the queue pair or the NIC is closed
	}
}

// end is the one place where a connection ends. c.mu is held.
func (c *Conn) end(err error) {
	if c.ended {
		return
	}
	c.ended, c.err = true, err
	c.fail()
	c.QP.conn.CompareAndSwap(c, nil)
	if c.owned && !c.live && (c.active || c.listener != nil) {
		c.q.Close() // the application never got it
	}
	close(c.done)
	c.tell()
}

// event takes one of the manager's events.
func (c *Conn) event(e *cm.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.ID != c.id {
		return
	}
	if e.Kind == cm.EventDisconnected && e.Reason == 0 {
		c.gone = true // DREQ or DREP: both follow the end of a queue pair (§5.13)
		defer c.tell()
	}
	if c.ended {
		return
	}
	switch e.Kind {
	case cm.EventConnectResponse:
		c.respond(e)
	case cm.EventEstablished:
		c.begin()
	case cm.EventRejected:
		if c.lowerMTU(e) {
			return
		}
		c.end(c.failure(&RejectedError{Peer: c.remote, Reason: e.Reason, Local: e.Local, Info: e.Info, PrivateData: e.Private}))
	case cm.EventUnreachable:
		c.end(c.failure(ErrUnreachable))
	case cm.EventDisconnected:
		c.end(&DisconnectedError{Peer: c.remote, Local: e.Local, Reason: e.Reason, PrivateData: e.Private})
	default: // TimewaitExit is the manager's
	}
}

// failure is the error of a connection that was never established.
func (c *Conn) failure(err error) error {
	op := "accept"
	if c.active {
		op = "dial"
	}
	return &ConnError{Op: op, Addr: c.remote.String(), Err: err}
}

// begin: the connection is established.
func (c *Conn) begin() {
	c.live = true
	close(c.established)
	c.tell()
	if c.listener != nil && !c.listener.deliver(c) {
		c.cm.Disconnect(c.id)
		c.end(&DisconnectedError{Peer: c.remote, Local: true})
		c.q.Close()
	}
}

// watch is told by the queue pair, under its lock.
func (c *Conn) watch(e qp.Event) {
	switch {
	case e.Type == qp.EventQPFatal:
		c.cm.Later(func(mono.Time) { c.broken(e) })
	case e.Type == qp.EventCommEst && !c.active:
		c.cm.Later(func(mono.Time) { c.heard() })
	}
}

// heard: the peer's first request has arrived, so it has our answer (§5.12).
func (c *Conn) heard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended && !c.live {
		_ = c.cm.Established(c.id) // refused when the end is on its way as an event
	}
}

// broken: the queue pair failed, which ends the connection for the peer too.
func (c *Conn) broken(e qp.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.cm.Disconnect(c.id)
	cause := causeOf(e)
	if err := c.nic.nic.Err(); err != nil && e.Cause.Status == cq.StatusFatal {
		cause = fmt.Errorf("%w: %w", cause, err)
	}
	if err := c.MemoryError(); err != nil {
		cause = fmt.Errorf("%w: %w", cause, err)
	}
	c.end(&DisconnectedError{Peer: c.remote, Local: true, Cause: cause})
}

// causeOf says in an error why a queue pair failed.
func causeOf(e qp.Event) error {
	switch s, syn := e.Cause.Status, e.Cause.Syndrome; {
	case s != cq.StatusSuccess && s != cq.StatusFlushed:
		return fmt.Errorf("%w (%d)", s.Sentinel(), uint8(s))
	case syn.Kind() == roce.AckNAK:
		return fmt.Errorf("the peer asked for what it may not: %v", syn)
	default:
		return errors.New("a completion queue was full, or memory failed")
	}
}

// managerClosed: no event will follow.
func (c *Conn) managerClosed(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live {
		c.end(&DisconnectedError{Peer: c.remote, Local: true, Cause: why})
		return
	}
	c.end(c.failure(why))
}

// connHandler keeps the handler's methods out of Conn's.
type connHandler struct{ *Conn }

func (h connHandler) Event(e *cm.Event) { h.event(e) }

func (h connHandler) Closed(why error) { h.managerClosed(closedOr(why)) }

// take gives a queue pair its connection, if it can have one.
func (c *Conn) take(kind Type) error {
	q := c.QP
	switch {
	case q.kind == UD:
		return &nic.ConfigError{Field: "QP", Value: q.kind, Allowed: "RC or UC: datagrams have ResolveUD and ListenUD"}
	case q.kind != kind:
		return &nic.ConfigError{Field: "QP", Value: q.kind, Allowed: kind.String() + ", the service that the peer asks for"}
	case q.State() != StateInit:
		return &nic.ConfigError{Field: "QP", Value: q.State(), Allowed: "a queue pair in INIT, as CreateQP and Reset leave it"}
	}
	if _, held := q.nic.nic.HeldQPNs(q.QPN()); held && q.conn.Load() == nil {
		return &nic.ConfigError{Field: "QP", Value: q.QPN(), Allowed: "a queue pair whose last connection is over: this one's is in TIMEWAIT, wait for it or make another"}
	}
	if !q.conn.CompareAndSwap(nil, c) {
		return &nic.ConfigError{Field: "QP", Value: q.QPN(), Allowed: "a queue pair without a connection"}
	}
	return nil
}
