package tools

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/cq"
)

// Next waits for one completion of a connection's queue. It returns an error that
// unwraps to [ErrEnded], and to what ended the connection, when the work was
// flushed.
func Next(ctx context.Context, q *hixl.CQ, c *hixl.Conn) (wc hixl.Completion, err error) {
	var wcs [1]hixl.Completion
	if _, err := q.Wait(ctx, wcs[:]); err != nil {
		return wc, Cause(ctx, err)
	}
	err = wcs[0].Err()
	if !errors.Is(err, cq.ErrFlushed) {
		return wcs[0], err
	}
	select {
	case <-c.Done():
		err = c.Err()
	case <-ctx.Done():
	}
	return wcs[0], errors.Join(ErrEnded, err)
}

// PeerDisconnected reports whether a connection was ended in order by the peer.
func PeerDisconnected(c *hixl.Conn) bool {
	var d *hixl.DisconnectedError
	return errors.As(c.Err(), &d) && !d.Local && d.Cause == nil
}

// CMServer returns the address a client of the connection manager dials.
func (c *Common) CMServer() string { return net.JoinHostPort(c.Host, strconv.Itoa(c.Port)) }

// ListenCM listens on a NIC, and tells that it does.
func (c *Common) ListenCM(ctx context.Context, n *hixl.NIC, backlog int) (*hixl.Listener, error) {
	l, err := n.Listen(ctx, ":"+strconv.Itoa(c.Port), hixl.ListenConfig{Backlog: backlog})
	if err != nil {
		return nil, err
	}
	if c.Ready != nil {
		c.Ready(net.UDPAddrFromAddrPort(l.Addr()))
	}
	return l, nil
}

// DialCM dials with the patience of c.
func (c *Common) DialCM(ctx context.Context, n *hixl.NIC, o hixl.DialOptions) (*hixl.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Patience, ErrSilent)
	defer cancel()
	conn, err := n.Dial(ctx, c.CMServer(), o)
	if err != nil && context.Cause(ctx) != nil {
		return nil, fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	return conn, err
}
