package hixl

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
)

// DialOptions say how to connect. QP or QPConfig must be given.
type DialOptions struct {
	// QPConfig describes the queue pair to make: RC, or UC. A failed Dial closes it.
	QPConfig QPConfig
	// QP is a queue pair in INIT to use instead, which stays the caller's; receives
	// that must be there when the peer sends have been posted to it.
	QP *QP
	// Receives are posted before the peer is asked.
	Receives []RecvWR
	// Connect holds this side's choices. RDMA CM crosses some over: RNRRetries is
	// what the peer may do to us, not we to it; Retries are for both. The default
	// Timeout is what RDMA CM computes from the peer's answer, 537 ms as a rule;
	// one that is given is also told to the peer. Without MTU the largest is
	// asked for, and less if the peer wants less.
	Connect ConnectOptions
	// PrivateData tells the peer's application something, up to [MaxDialData]
	// bytes, 48 of which leave this package's mark in place. Peers that do not run
	// this package get it padded with zeros.
	PrivateData []byte
	// LocalPort is the port to dial from; 0 is a random one of 49152 to 65535.
	LocalPort uint16
	// Resolver looks names up; nil is net.DefaultResolver.
	Resolver *net.Resolver

	notify func() // see Conn.notify
}

// Dial connects to address, "host:port" as in package net: an IPv4 address, an
// IPv6 address in brackets, whose zone, if any, is that of the NIC, or a name with
// addresses of the NIC's family, which are tried in turn (with DialOptions.QP only
// after a refusal); no host is the NIC's own address. It is RDMA connection
// management in the TCP port space, as rdma_connect of librdmacm does it, on UDP
// port 4791 alone. The connection comes back established, its queue pair ready to
// send.
//
// ctx bounds it, and what was begun when ctx ends is taken back, the peer told;
// without a deadline, a silent peer is given up after about a minute. The error is
// a *[ConnError].
//
// On a stepped NIC, which nobody would drive meanwhile, use [NIC.StartDial].
func (n *NIC) Dial(ctx context.Context, address string, o DialOptions) (*Conn, error) {
	fail := func(err error) (*Conn, error) { return nil, &ConnError{Op: "dial", Addr: address, Err: err} }
	peers, err := n.lookup(ctx, o.Resolver, "tcp", address)
	if err != nil {
		return fail(err)
	}
	var failed []error
	for i, peer := range peers {
		c, err := n.dialOne(ctx, peer, len(peers)-i, o)
		if err == nil {
			return c, nil
		}
		failed = append(failed, err)
		if ctx.Err() != nil || !o.goOn(err) {
			break
		}
	}
	if len(failed) == 1 {
		return nil, failed[0]
	}
	return nil, errors.Join(failed...)
}

// goOn reports whether the next address is worth a try, and makes the options fit
// for it. A queue pair of the caller's has its receives by then, and goes on only
// after a refusal: its number rests where a silent peer may have learnt it.
func (o *DialOptions) goOn(err error) bool {
	refused := errors.Is(err, ErrRejected)
	if o.QP != nil {
		o.Receives = nil
		return refused
	}
	return refused || errors.Is(err, ErrUnreachable) || errors.Is(err, context.DeadlineExceeded)
}

// dialOne tries one of several addresses that are left.
func (n *NIC) dialOne(ctx context.Context, peer netip.AddrPort, left int, o DialOptions) (*Conn, error) {
	ctx, cancel := share(ctx, left)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return nil, &ConnError{Op: "dial", Addr: peer.String(), Err: err}
	}
	c, err := n.StartDial(peer, o)
	if err != nil {
		return nil, err
	}
	if err = c.WaitEstablished(ctx); err == nil {
		return c, nil
	}
	if failed := c.Err(); failed != nil {
		return nil, failed
	}
	c.abandon()
	return nil, &ConnError{Op: "dial", Addr: peer.String(), Err: err}
}

// StartDial begins what Dial does and returns at once: Established of the
// connection is closed when it can be used, Done when it failed, Close takes it
// back. It is for those who drive a stepped NIC or have no goroutine to wait. The
// error is a *[ConnError].
func (n *NIC) StartDial(peer netip.AddrPort, o DialOptions) (*Conn, error) {
	c, err := n.startDial(peer, &o)
	if err != nil {
		return nil, &ConnError{Op: "dial", Addr: peer.String(), Err: closedOr(err)}
	}
	return c, nil
}

func (n *NIC) startDial(peer netip.AddrPort, o *DialOptions) (*Conn, error) {
	p, err := o.params(n)
	if err != nil {
		return nil, err
	}
	p.Peer, p.Service, p.SrcPort = peer.Addr().WithZone(""), cm.PortSpaceTCP.Service(peer.Port()), o.LocalPort
	if p.SrcPort == 0 {
		p.SrcPort = ephemeral()
	}
	q, owned, err := n.queuePair(o.QP, &o.QPConfig)
	if err != nil {
		return nil, err
	}
	c := newConn(n.cm, q)
	c.active, c.owned, c.options, c.notify = true, owned, o.Connect, o.notify
	c.remote, c.local = netip.AddrPortFrom(p.Peer, peer.Port()), netip.AddrPortFrom(n.Address(), p.SrcPort)
	p.QPN, p.Transport, p.MaxDestRead, p.SRQ = q.QPN(), cm.Transport(q.kind), cmCount(q.reads), q.srq
	c.request = p
	if err := c.start(o.Receives); err != nil {
		if owned {
			_ = q.Close()
		}
		return nil, err
	}
	return c, nil
}

// queuePair makes a queue pair, unless one is given.
func (n *NIC) queuePair(given *QP, cfg *QPConfig) (q *QP, owned bool, err error) {
	switch {
	case given == nil:
		q, err = n.CreateQP(*cfg)
		return q, true, err
	case given.nic != n:
		return nil, false, &nic.ConfigError{Field: "QP", Value: given.QPN(), Allowed: "a queue pair of the same NIC"}
	case cfg.PD != nil:
		return nil, false, &nic.ConfigError{Field: "QP", Value: given.QPN(), Allowed: "nothing, when QPConfig is given"}
	}
	return given, false, nil
}

// start asks the peer.
func (c *Conn) start(receives []RecvWR) error {
	if err := c.take(c.kind); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.PostRecv(receives...)
	if err == nil {
		c.id, err = c.cm.Connect(c.request, connHandler{c})
	}
	if err != nil {
		c.end(c.failure(err))
	}
	return err
}

// params translates the options (§5.6).
func (o *DialOptions) params(n *NIC) (p cm.ConnectParams, err error) {
	if len(o.PrivateData) > MaxDialData {
		return p, tooLong(len(o.PrivateData), MaxDialData)
	}
	p, err = o.Connect.cm(n)
	p.Private = tagged(o.PrivateData, MaxDialData)
	return p, err
}

// respond: the peer has accepted. Join the queue pairs, then say so (§5.7).
func (c *Conn) respond(e *cm.Event) {
	user, hixl, small := untag(e.Private)
	c.private, c.hixl = user, hixl
	if err := c.join(&e.QP, &c.options, small); err != nil {
		_ = c.cm.Reject(c.id, cm.RejectParams{}) // refused only if it is over
		c.end(c.failure(err))
		return
	}
	c.up.Store(true)
	if c.cm.Confirm(c.id) == nil {
		c.begin()
	} // or the event that says why not is on its way
}

// lowerMTU tries again with the MTU that the peer proposes, if it is the
// application's to choose but has not been.
func (c *Conn) lowerMTU(e *cm.Event) bool {
	if !c.active || c.live || e.Reason != cm.ReasonMTU || c.options.MTU != 0 || len(e.Info) == 0 {
		return false
	}
	mtu := roce.PathMTU(e.Info[0])
	if !mtu.Valid() || mtu >= c.request.MTU {
		return false
	}
	c.request.MTU = mtu
	id, err := c.cm.Connect(c.request, connHandler{c})
	if err != nil {
		return false
	}
	c.id = id
	return true
}
