package perf

import (
	"context"
	"errors"
	"fmt"

	"github.com/gohixl/hixl/internal/tools"
)

// session is one run at one end.
type session struct {
	cfg    *Config
	ctl    control
	plug   plug
	dev    *device
	terms  terms
	sizes  []int
	mine   []dest
	theirs []dest
	peer   comparer
	// drive moves the messages of one size; tests that replay an exchange put
	// something else in its place.
	drive func(ctx context.Context, e *engine, at *rounds, ended <-chan error) error

	parting <-chan error // a server's barrier that is awaited beside the traffic
	res     Result
}

// Result tells how a run went.
type Result struct {
	// Messages is how many this end measured, of all sizes.
	Messages uint64
	// Compared says that what arrived here was compared with what the peer sent,
	// Arrived that bytes arrived at all.
	Compared, Arrived bool
	// Retransmitted is the number of our packets that were sent again.
	Retransmitted uint64
}

// plug is how the queue pairs come to the peer's: by what the exchange says, or
// by the connection manager.
type plug interface {
	// wire makes the device's queue pairs.
	wire(ctx context.Context, s *session) error
	// join connects them, when the peer has told what it has.
	join(s *session) error
	// leave ends the exchange after the last message. word says whether the test
	// has a word for it.
	leave(ctx context.Context, s *session, word bool) error
}

// Run runs one test and prints it to cfg.Out. The error is a *[tools.OptionError],
// *[tools.ExchangeError] or *[tools.DataError], what opening the NIC said, or what
// became of a message.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	if cfg.CM {
		return runCM(ctx, &cfg)
	}
	return runTCP(ctx, &cfg)
}

// run is the test from the version to the farewell. The rounds of addresses are
// those of perftest 4.5: its tests differ in where they have a barrier more.
func (s *session) run(ctx context.Context) (err error) {
	if s.terms, err = s.ctl.hello(ctx, s.dev.nic.MTU()); err != nil {
		return err
	}
	if s.sizes, err = s.cfg.sizes(s.terms.mtu); err != nil {
		return err
	}
	if err := s.dev.prepare(s.cfg, s.terms, s.largest()); err != nil {
		return err
	}
	if err := s.plug.wire(ctx, s); err != nil {
		return err
	}
	if err := s.introduce(ctx); err != nil {
		return err
	}
	watched, stop := tools.Watch(ctx, s.cfg.Patience, s.dev.progress)
	defer stop()
	if err := s.traffic(watched); err != nil {
		return err
	}
	s.res.Retransmitted = s.dev.retransmitted()
	if err := s.plug.leave(watched, s, s.cfg.Test != Test{Write, Latency}); err != nil {
		return err
	}
	s.printEnd()
	return s.cfg.OutErr()
}

// largest is what an area must hold.
func (s *session) largest() int {
	n := s.sizes[len(s.sizes)-1]
	if s.cfg.Test.Verb == Atomic {
		n = max(n, s.cfg.TxDepth*atomicSize) // the results
	}
	return n
}

// introduce swaps the addresses and joins the queue pairs.
func (s *session) introduce(ctx context.Context) (err error) {
	s.mine = s.dev.dests(s.cfg)
	s.printTest()
	send := s.cfg.Test.Verb == Send
	if s.cfg.Test.Kind == Latency && !send {
		if err := s.sync(ctx, "before the addresses"); err != nil {
			return err
		}
	}
	if s.theirs, err = s.ctl.swapDests(ctx, s.mine, nil); err != nil {
		return err
	}
	if err := s.plug.join(s); err != nil {
		return &tools.ExchangeError{Peer: s.ctl.link.Peer(), Step: "its addresses", Problem: "of no use", Err: err}
	}
	s.peer.seed, s.peer.known = s.theirs[0].seed()
	s.printAddresses()
	if send {
		if err := s.sync(ctx, "after connecting"); err != nil {
			return err
		}
	}
	if _, err := s.ctl.swapDests(ctx, s.mine, s.theirs); err != nil {
		return err
	}
	if !send {
		return s.sync(ctx, "before the traffic")
	}
	return nil
}

// sync is a barrier for which the peer must be as fast as for other messages.
func (s *session) sync(ctx context.Context, step string) error {
	_, err := s.ctl.swapDest(ctx, "barrier "+step, &s.mine[0])
	return err
}

// barrier is one for which the peer may take as long as its traffic goes on.
func (s *session) barrier(ctx context.Context, step string) error {
	step = "barrier " + step
	if s.parting == nil {
		return s.silence(ctx, s.ctl.barrier(ctx, step, &s.mine[0]))
	}
	select {
	case err := <-s.parting:
		s.parting = nil
		if err != nil {
			return s.silence(ctx, err)
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.ctl.answer(ctx, step, &s.mine[0])
}

// silence says what the peer of a dead connection left undone.
func (s *session) silence(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), tools.ErrSilent) {
		return fmt.Errorf("no packet and no word of it for %v: %w", s.cfg.Patience, err)
	}
	return err
}

// listen awaits the barrier that ends the peer's messages, beside the traffic. The
// channel delivers nil when it has come, or why it will not.
func (s *session) listen(ctx context.Context) <-chan error {
	parting, ended := make(chan error, 1), make(chan error, 1)
	s.parting = parting
	go func() {
		err := s.ctl.await(ctx, "barrier after the traffic")
		parting <- err
		ended <- err
	}()
	return ended
}
