package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"
)

// Conn carries the messages of an exchange over TCP. Each leaves in one write,
// since the originals read each with one read. It is used by one goroutine at a
// time in each direction.
type Conn struct {
	c        net.Conn
	patience time.Duration
}

// NewConn makes a Conn of a connection, which it owns from then on.
func NewConn(c net.Conn, patience time.Duration) *Conn { return &Conn{c: c, patience: patience} }

// Dial connects to the server of c. The error is an *[ExchangeError].
func Dial(ctx context.Context, c *Common) (*Conn, error) {
	addr := net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
	d := net.Dialer{Timeout: c.Patience}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, &ExchangeError{
			Peer: addr, Step: "connecting", Problem: "no connection; is the server running, and is this its port (-p)", Err: err,
		}
	}
	return NewConn(conn, c.Patience), nil
}

// Accept waits for one client and stops listening. The error is an
// *[ExchangeError].
func Accept(ctx context.Context, c *Common) (*Conn, error) {
	addr := net.JoinHostPort(c.Bind, strconv.Itoa(c.Port))
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, &ExchangeError{Peer: addr, Step: "listening", Problem: "cannot; give another port with -p", Err: err}
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	if c.Ready != nil {
		c.Ready(l.Addr())
	}
	conn, err := l.Accept()
	if err != nil {
		return nil, &ExchangeError{Peer: addr, Step: "accepting", Problem: "no client", Err: cause(ctx, err)}
	}
	return NewConn(conn, c.Patience), nil
}

// Local returns this end's address, with its zone.
func (c *Conn) Local() netip.Addr { return addrOf(c.c.LocalAddr()) }

// Peer names the other end.
func (c *Conn) Peer() string { return c.c.RemoteAddr().String() }

func addrOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return ap.Addr().Unmap()
	}
	return netip.Addr{}
}

// Send writes one message. The error is an *[ExchangeError].
func (c *Conn) Send(ctx context.Context, step string, b []byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.patience, ErrSilent)
	defer cancel()
	defer c.interruptible(ctx)()
	if _, err := c.c.Write(b); err != nil {
		return c.failed(ctx, step, "cannot send", err)
	}
	return nil
}

// Receive fills b with one message and waits for it as long as the peer's
// silence is bearable. The error is an *[ExchangeError].
func (c *Conn) Receive(ctx context.Context, step string, b []byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.patience, ErrSilent)
	defer cancel()
	return c.Await(ctx, step, b)
}

// Await is Receive without a bound of its own: only ctx ends it.
func (c *Conn) Await(ctx context.Context, step string, b []byte) error {
	defer c.interruptible(ctx)()
	n, err := io.ReadFull(c.c, b)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return c.failed(ctx, step, fmt.Sprintf("the peer closed the connection after %d of %d bytes", n, len(b)), nil)
	}
	return c.failed(ctx, step, fmt.Sprintf("got %d of %d bytes", n, len(b)), err)
}

// Finish says that this side is through and waits until the peer is too, or ctx
// ends: what it still sends is none of our business.
func (c *Conn) Finish(ctx context.Context) {
	defer c.interruptible(ctx)()
	if t, ok := c.c.(interface{ CloseWrite() error }); ok {
		_ = t.CloseWrite()
	}
	_, _ = io.CopyN(io.Discard, c.c, 1<<16)
}

// Close closes the connection.
func (c *Conn) Close() error { return c.c.Close() }

// interruptible lets ctx end what the connection is doing, until the function
// that it returns is called. A connection so interrupted is of no use any more.
func (c *Conn) interruptible(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, func() { _ = c.c.SetDeadline(time.Unix(1, 0)) })
}

func (c *Conn) failed(ctx context.Context, step, problem string, err error) error {
	if err != nil {
		err = cause(ctx, err)
	}
	return &ExchangeError{Peer: c.Peer(), Step: step, Problem: problem, Err: err}
}

// cause prefers the reason of an ended context to the error it made of a call.
func cause(ctx context.Context, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) {
		return Cause(ctx, err)
	}
	return err
}
