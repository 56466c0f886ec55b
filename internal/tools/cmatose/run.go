package cmatose

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
)

// Result tells how a test went.
type Result struct {
	Received      int    // messages
	Retransmitted uint64 // packets of ours sent again
}

// farewell bounds how long a peer is waited for that has been told of the end.
const farewell = 10 * time.Second

// test is one end of a test.
type test struct {
	cfg   *Config
	nic   *hixl.NIC
	pd    *hixl.PD
	nodes []*node
}

// Run runs one test and prints it to cfg.Out. The error is a *[tools.OptionError],
// *[tools.DataError] or *[hixl.ConnError], what opening the NIC said, or what
// became of a message.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	addr, err := cfg.NICAddr(ctx)
	if err != nil {
		return nil, err
	}
	n, err := cfg.OpenNIC(addr, 0)
	if err != nil {
		return nil, err
	}
	t := &test{cfg: &cfg, nic: n, pd: n.AllocPD()}
	run, role := t.server, "server"
	if cfg.Client() {
		run, role = t.client, "client"
	}
	cfg.Printf("cmatose: starting %s\n", role)
	if err := errors.Join(run(ctx), n.Close()); err != nil {
		cfg.Printf("test complete\nreturn status -1\n")
		return nil, err
	}
	cfg.Printf("test complete\nreturn status 0\n")
	return t.result(), cfg.OutErr()
}

func (t *test) result() *Result {
	res := &Result{Retransmitted: t.nic.Stats().RC.Retransmitted}
	for _, n := range t.nodes {
		res.Received += n.received
	}
	return res
}

// watch bounds the silence of the peer.
func (t *test) watch(ctx context.Context) (context.Context, func()) {
	return tools.Watch(ctx, t.cfg.Patience, func() uint64 { return tools.Progress(t.nic) })
}

// all does something with every connection in turn.
func (t *test) all(f func(n *node) error) error {
	for _, n := range t.nodes {
		if err := f(n); err != nil {
			return err
		}
	}
	return nil
}

func (t *test) client(ctx context.Context) error {
	t.cfg.Printf("cmatose: connecting\n")
	for i := range t.cfg.Connections {
		n, err := t.newNode(i)
		if err != nil {
			return err
		}
		n.conn, err = t.cfg.DialCM(ctx, t.nic, hixl.DialOptions{QPConfig: t.qpConfig(n), Receives: t.receives(n), Connect: t.connect()})
		if err != nil {
			return fmt.Errorf("connection %d of %d: %w", i+1, t.cfg.Connections, err)
		}
		t.nodes = append(t.nodes, n)
	}
	ctx, stop := t.watch(ctx)
	defer stop()
	if t.cfg.Messages > 0 {
		t.cfg.Printf("receiving data transfers\n")
		if err := t.all(func(n *node) error { return t.until(ctx, n, 0, t.cfg.Messages) }); err != nil {
			return err
		}
		t.cfg.Printf("sending replies\n")
		if err := t.all(t.send); err != nil {
			return err
		}
		t.cfg.Printf("data transfers complete\n")
	}
	return t.all(func(n *node) error { return t.over(ctx, n) })
}

func (t *test) connect() hixl.ConnectOptions {
	return hixl.ConnectOptions{MaxReads: 1, Timeout: t.cfg.Timeout, TrafficClass: uint8(t.cfg.TrafficClass)}
}

func (t *test) server(ctx context.Context) error {
	if err := t.accept(ctx); err != nil {
		return err
	}
	ctx, stop := t.watch(ctx)
	defer stop()
	if t.cfg.Messages > 0 {
		t.cfg.Printf("initiating data transfers\n")
		if err := t.all(t.send); err != nil {
			return err
		}
		t.cfg.Printf("completing sends\n")
		if err := t.all(func(n *node) error { return t.until(ctx, n, t.cfg.Messages, 0) }); err != nil {
			return err
		}
		t.cfg.Printf("receiving data transfers\n")
		if err := t.all(func(n *node) error { return t.until(ctx, n, t.cfg.Messages, t.cfg.Messages) }); err != nil {
			return err
		}
		t.cfg.Printf("data transfers complete\n")
	}
	t.cfg.Printf("cmatose: disconnecting\n")
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	_ = t.all(func(n *node) error { _ = n.conn.Disconnect(ctx); return nil }) // the peer may go at once
	t.cfg.Printf("disconnected\n")
	return nil
}

// accept takes the connections, and comes back when all stand.
func (t *test) accept(ctx context.Context) error {
	l, err := t.cfg.ListenCM(ctx, t.nic, t.cfg.Connections)
	if err != nil {
		return err
	}
	defer l.Close()
	for i := range t.cfg.Connections {
		r, err := t.request(ctx, l, i)
		if err != nil {
			return err
		}
		n, err := t.newNode(i)
		if err != nil {
			return err
		}
		n.conn, err = r.Accept(hixl.AcceptOptions{QPConfig: t.qpConfig(n), Receives: t.receives(n), Connect: t.connect()})
		if err != nil {
			return fmt.Errorf("connection %d of %d: %w", i+1, t.cfg.Connections, err)
		}
		t.nodes = append(t.nodes, n)
	}
	return t.all(func(n *node) error { return n.conn.WaitEstablished(ctx) })
}

// request waits for the next request: the first as long as it takes.
func (t *test) request(ctx context.Context, l *hixl.Listener, i int) (*hixl.Request, error) {
	if i > 0 {
		c, cancel := context.WithTimeoutCause(ctx, t.cfg.Patience, tools.ErrSilent)
		defer cancel()
		ctx = c
	}
	r, err := l.AcceptRequest(ctx)
	if err != nil && context.Cause(ctx) != nil {
		return nil, fmt.Errorf("%d of %d connections (do both ends have the same -c?): %w", i, t.cfg.Connections, context.Cause(ctx))
	}
	return r, err
}
