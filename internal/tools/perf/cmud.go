package perf

import (
	"context"
	"fmt"
	"strconv"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/tools"
)

// With -R -c UD no queue pair of the test is connected. The client asks which one
// serves the port of the datagrams' port space (SIDR). Where the server sends too,
// it learns the client's from a first datagram, whose immediate is the number.

// meetLen is the length of that datagram. Its bytes mean nothing.
const meetLen = 4

// serverSends reports whether datagrams go to the client too.
func (c *Config) serverSends() bool { return c.Bidirectional || c.Test.Kind == Latency }

// listenUD listens before the client can ask: the original does so only after a
// barrier, and its client does not survive to be refused.
func (p *cmPlug) listenUD(ctx context.Context, s *session) (err error) {
	p.datagrams, err = s.dev.nic.ListenUD(ctx, ":"+strconv.Itoa(s.cfg.Port), hixl.UDConfig{Backlog: s.cfg.QPs})
	return err
}

// meet makes the next queue pair of the test and tells the peer of it.
func (p *cmPlug) meet(ctx context.Context, s *session) error {
	cfg := s.dev.qpConfig(s.cfg)
	cfg.QKey = hixl.DefaultQKey
	q, err := s.dev.nic.CreateQP(cfg)
	if err != nil {
		return err
	}
	index := len(s.dev.qps)
	s.dev.qps = append(s.dev.qps, q)
	if err := q.Activate(); err != nil {
		return err
	}
	if s.cfg.Client() {
		return p.find(ctx, s, q, index)
	}
	return p.beFound(ctx, s, q, index)
}

// find asks for the server's queue pair and tells it of q.
func (p *cmPlug) find(ctx context.Context, s *session, q *hixl.QP, index int) error {
	r, err := persist(ctx, func() (*hixl.Resolved, error) {
		return s.dev.nic.ResolveUD(ctx, s.cfg.CMServer(), hixl.ResolveOptions{})
	})
	if err != nil {
		return err
	}
	to := r.To
	to.TrafficClass = uint8(s.cfg.TrafficClass)
	s.dev.to = append(s.dev.to, to)
	if !s.cfg.serverSends() {
		return nil
	}
	at := s.dev.mr.SGE(uint64(s.dev.lay.local(index)), meetLen)
	err = q.PostSend(hixl.SendWR{
		Op: hixl.OpSendImm, Imm: uint32(q.QPN()), To: to, Flags: hixl.Signaled, SGE: []hixl.SGE{at},
	})
	if err != nil {
		return err
	}
	_, err = s.dev.one(ctx)
	return err
}

// beFound answers the next client that asks with q, and awaits its word of its own.
func (p *cmPlug) beFound(ctx context.Context, s *session, q *hixl.QP, index int) error {
	r, err := p.datagrams.AcceptRequest(ctx)
	if err != nil {
		return tools.Cause(ctx, err)
	}
	if !s.cfg.serverSends() {
		return r.Accept(q, nil)
	}
	at := s.dev.mr.SGE(uint64(s.dev.lay.shared(index)), hixl.GRHLen+meetLen)
	if err := q.PostRecv(hixl.RecvWR{SGE: []hixl.SGE{at}}); err != nil {
		return err
	}
	if err := r.Accept(q, nil); err != nil {
		return err
	}
	wc, err := s.dev.one(ctx)
	if err != nil {
		return fmt.Errorf("waiting for the datagram with the client's queue pair: %w", err)
	}
	peer := r.RemoteAddr().Addr()
	if wc.Flags&cq.WithImm == 0 || wc.Peer != peer || wc.Imm == 0 || wc.Imm != uint32(wc.SrcQP) {
		return &tools.ExchangeError{
			Peer: peer.String(), Step: "the client's queue pair", Problem: "not understood",
			Err: fmt.Errorf("a datagram of queue pair %#x at %v, which names %#x", uint32(wc.SrcQP), wc.Peer, wc.Imm),
		}
	}
	s.dev.to = append(s.dev.to, hixl.Destination{
		Addr: peer, QPN: wc.SrcQP, QKey: hixl.DefaultQKey, TrafficClass: uint8(s.cfg.TrafficClass),
	})
	return nil
}

// one waits for one completion, which must be a success.
func (d *device) one(ctx context.Context) (hixl.Completion, error) {
	var wcs [1]hixl.Completion
	if _, err := d.cq.Wait(ctx, wcs[:]); err != nil {
		return wcs[0], tools.Cause(ctx, err)
	}
	return wcs[0], wcs[0].Err()
}
