package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
)

// runCM runs a test with -R: the exchange goes over a first connection of the
// connection manager, the test over further ones to the same port.
func runCM(ctx context.Context, cfg *Config) (*Result, error) {
	addr, err := cfg.NICAddr(ctx)
	if err != nil {
		return nil, err
	}
	dev, err := openDevice(cfg, addr)
	if err != nil {
		return nil, err
	}
	s := &session{cfg: cfg, ctl: control{client: cfg.Client()}, dev: dev, drive: move}
	if err := dev.close(s.runOverCM(ctx)); err != nil {
		return nil, err
	}
	return &s.res, nil
}

func (s *session) runOverCM(ctx context.Context) error {
	end, err := tools.NewCMLinkEnd(s.dev.nic, s.dev.pd, s.cfg.Patience)
	if err != nil {
		return err
	}
	p := &cmPlug{}
	defer p.close()
	if s.cfg.Client() {
		p.connect = p.dial
		p.control, err = p.dialControl(ctx, s, end)
	} else {
		p.connect = p.acceptNext
		p.control, err = p.acceptControl(ctx, s, end)
	}
	if err != nil {
		return err
	}
	s.plug, s.ctl.link = p, p.control
	return s.run(ctx)
}

// cmPlug connects by the connection manager.
type cmPlug struct {
	listener  *hixl.Listener   // of a server
	datagrams *hixl.UDListener // of a server with -c UD
	control   *tools.CMLink
	conns     []*hixl.Conn
	// connect makes one connection of the test.
	connect func(context.Context, *session) (*hixl.Conn, error)
}

// close ends what a server listens with.
func (p *cmPlug) close() {
	if p.datagrams != nil {
		_ = p.datagrams.Close() // never fails
	}
	if p.listener != nil {
		_ = p.listener.Close()
	}
}

func (p *cmPlug) dialControl(ctx context.Context, s *session, end *tools.CMLinkEnd) (*tools.CMLink, error) {
	c, err := s.cfg.DialCM(ctx, s.dev.nic, hixl.DialOptions{
		QPConfig: end.QPConfig(s.dev.pd), Receives: end.Receives(), Connect: s.cmOptions(hixl.None),
	})
	if err != nil {
		return nil, err
	}
	return end.Link(c), nil
}

func (p *cmPlug) acceptControl(ctx context.Context, s *session, end *tools.CMLinkEnd) (*tools.CMLink, error) {
	s.cfg.Printf("%s", waiting)
	if s.cfg.Connection == hixl.UD {
		if err := p.listenUD(ctx, s); err != nil {
			return nil, err
		}
	}
	var err error
	if p.listener, err = s.cfg.ListenCM(ctx, s.dev.nic, s.cfg.QPs+1); err != nil {
		return nil, err
	}
	c, err := p.accept(ctx, hixl.AcceptOptions{QPConfig: end.QPConfig(s.dev.pd), Receives: end.Receives(), Connect: s.cmOptions(hixl.None)})
	if err != nil {
		return nil, err
	}
	return end.Link(c), nil
}

// accept takes the next request.
func (p *cmPlug) accept(ctx context.Context, o hixl.AcceptOptions) (*hixl.Conn, error) {
	r, err := p.listener.AcceptRequest(ctx)
	if err != nil {
		return nil, err
	}
	c, err := r.Accept(o)
	if err != nil {
		return nil, err
	}
	return c, c.WaitEstablished(ctx)
}

// cmOptions are this side's choices for a connection. The ACK timeout is the
// connection manager's unless the user chose one, as in perftest.
func (s *session) cmOptions(reads int) hixl.ConnectOptions {
	o := hixl.ConnectOptions{MaxReads: reads, TrafficClass: uint8(s.cfg.TrafficClass)}
	if s.cfg.timeoutGiven {
		o.Timeout = s.cfg.Timeout
	}
	return o
}

// wire makes and connects the queue pairs of the test, between two rounds of zeros.
func (p *cmPlug) wire(ctx context.Context, s *session) error {
	var zeros dest
	if _, err := s.ctl.swapDest(ctx, "barrier before connecting", &zeros); err != nil {
		return err
	}
	ctx2, cancel := context.WithTimeoutCause(ctx, s.cfg.Patience, tools.ErrSilent)
	defer cancel()
	for i := range s.cfg.QPs {
		attach := p.attach
		if s.cfg.Connection == hixl.UD {
			attach = p.meet
		}
		if err := attach(ctx2, s); err != nil {
			return fmt.Errorf("connection %d of %d: %w", i+1, s.cfg.QPs, err)
		}
	}
	_, err := s.ctl.swapDest(ctx, "barrier after connecting", &zeros)
	return err
}

// attach makes a connection.
func (p *cmPlug) attach(ctx context.Context, s *session) error {
	c, err := p.connect(ctx, s)
	if err != nil {
		return err
	}
	p.conns = append(p.conns, c)
	s.dev.qps = append(s.dev.qps, c.QP)
	return nil
}

// Perftest's server listens anew after the barrier, so that it may be asked too
// early; its own client tries ten times.
const (
	dialTries = 10
	dialPause = 100 * time.Millisecond
)

// persist asks again when it was too early.
func persist[R any](ctx context.Context, ask func() (R, error)) (R, error) {
	for try := 1; ; try++ {
		r, err := ask()
		if err == nil || try == dialTries || !errors.Is(err, hixl.ErrRejected) {
			return r, err
		}
		select {
		case <-time.After(dialPause):
		case <-ctx.Done():
			return r, err
		}
	}
}

func (p *cmPlug) dial(ctx context.Context, s *session) (*hixl.Conn, error) {
	cfg, o := s.cmEnd()
	return persist(ctx, func() (*hixl.Conn, error) {
		return s.cfg.DialCM(ctx, s.dev.nic, hixl.DialOptions{QPConfig: cfg, Connect: o})
	})
}

func (p *cmPlug) acceptNext(ctx context.Context, s *session) (*hixl.Conn, error) {
	cfg, o := s.cmEnd()
	return p.accept(ctx, hixl.AcceptOptions{QPConfig: cfg, Connect: o})
}

// cmEnd is how a queue pair of the test is made. Only READs and atomics ask for
// room for them, as in perftest.
func (s *session) cmEnd() (hixl.QPConfig, hixl.ConnectOptions) {
	cfg := s.dev.qpConfig(s.cfg)
	if s.cfg.Test.pulls() {
		return cfg, s.cmOptions(s.cfg.Outs)
	}
	cfg.MaxReads = hixl.None
	return cfg, s.cmOptions(hixl.None)
}

// join has nothing to do: wire has connected already.
func (p *cmPlug) join(*session) error { return nil }

// farewell bounds how long a peer is waited for that does not end a connection.
const farewell = 5 * time.Second

// leave ends the connections: the client those of the test, and then either side
// the one of the exchange.
func (p *cmPlug) leave(ctx context.Context, s *session, word bool) error {
	if !word {
		tools.Linger(ctx, 4*67*time.Millisecond, s.dev.nic) // for a peer that asks for a lost ACK again
	}
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	for _, c := range p.conns {
		if p.listener == nil {
			_ = c.Disconnect(ctx) // the peer may have gone
			continue
		}
		select {
		case <-c.Done():
		case <-ctx.Done():
		}
	}
	p.control.Disconnect(ctx)
	return nil
}
