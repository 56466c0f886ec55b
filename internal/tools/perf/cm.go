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
	if p.listener != nil {
		defer p.listener.Close()
	}
	s.plug, s.ctl.link = p, p.control
	return s.run(ctx)
}

// cmPlug connects by the connection manager.
type cmPlug struct {
	listener *hixl.Listener // of a server
	control  *tools.CMLink
	conns    []*hixl.Conn
	// connect makes one connection of the test.
	connect func(context.Context, *session) (*hixl.Conn, error)
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
	l, err := s.cfg.ListenCM(ctx, s.dev.nic, s.cfg.QPs+1)
	if err != nil {
		return nil, err
	}
	p.listener = l
	c, err := p.accept(ctx, hixl.AcceptOptions{QPConfig: end.QPConfig(s.dev.pd), Receives: end.Receives(), Connect: s.cmOptions(hixl.None)})
	if err != nil {
		return nil, errors.Join(err, l.Close())
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

// wire connects the queue pairs of the test, between two rounds of zeros.
func (p *cmPlug) wire(ctx context.Context, s *session) error {
	var zeros dest
	if _, err := s.ctl.swapDest(ctx, "barrier before connecting", &zeros); err != nil {
		return err
	}
	ctx2, cancel := context.WithTimeoutCause(ctx, s.cfg.Patience, tools.ErrSilent)
	defer cancel()
	for i := range s.cfg.QPs {
		c, err := p.connect(ctx2, s)
		if err != nil {
			return fmt.Errorf("connection %d of %d: %w", i+1, s.cfg.QPs, err)
		}
		p.conns = append(p.conns, c)
		s.dev.qps = append(s.dev.qps, c.QP)
	}
	_, err := s.ctl.swapDest(ctx, "barrier after connecting", &zeros)
	return err
}

// Perftest's server listens anew after the barrier, so that it may be asked too
// early; its own client tries ten times.
const (
	dialTries = 10
	dialPause = 100 * time.Millisecond
)

func (p *cmPlug) dial(ctx context.Context, s *session) (*hixl.Conn, error) {
	cfg, o := s.cmEnd()
	for try := 1; ; try++ {
		c, err := s.cfg.DialCM(ctx, s.dev.nic, hixl.DialOptions{QPConfig: cfg, Connect: o})
		if err == nil || try == dialTries || !errors.Is(err, hixl.ErrRejected) {
			return c, err
		}
		select {
		case <-time.After(dialPause):
		case <-ctx.Done():
			return nil, err
		}
	}
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

// join has nothing to do: the connections stand.
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
