package perf

import (
	"context"
	"fmt"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
)

// traffic runs what the test measures, with the barriers and reports that belong
// to it, and prints each line of the table as it is known.
func (s *session) traffic(ctx context.Context) error {
	s.printHead()
	switch t := s.cfg.Test; {
	case t.Kind == Latency:
		return s.latencies(ctx)
	case t.Verb == Send:
		return s.sendBandwidth(ctx)
	case !s.cfg.Client() && !s.cfg.Bidirectional:
		return s.serve(ctx)
	}
	if err := s.rdmaBandwidth(ctx); err != nil {
		return err
	}
	if s.cfg.Bidirectional {
		return s.barrier(ctx, "at the end")
	}
	return nil
}

// runSize moves the messages of one size.
func (s *session) runSize(ctx context.Context, e *engine, at *rounds, ended <-chan error) error {
	if err := s.drive(ctx, e, at, ended); err != nil {
		return err
	}
	s.res.Messages += e.time.counted
	return nil
}

// move is the drive of a real run.
func move(ctx context.Context, e *engine, at *rounds, ended <-chan error) error {
	switch t := e.cfg.Test; {
	case t.Kind == Bandwidth:
		return e.stream(ctx, ended)
	case t.Verb == Write:
		return e.volley(ctx, at)
	case t.Verb == Send:
		return e.pingPong(ctx, at)
	default:
		return e.ping(ctx, at)
	}
}

// rdmaBandwidth is the bandwidth of writes, reads and atomics at an end that
// posts them.
func (s *session) rdmaBandwidth(ctx context.Context) (err error) {
	var mine, theirs bwReport
	for _, size := range s.sizes {
		e := newEngine(s.cfg, s.dev, s.theirs, size)
		if s.cfg.Bidirectional {
			if err := s.barrier(ctx, "before the traffic"); err != nil {
				return err
			}
		}
		if err := s.runSize(ctx, e, nil, nil); err != nil {
			return err
		}
		if s.cfg.Bidirectional && s.cfg.All {
			if err := s.barrier(ctx, "after the traffic"); err != nil {
				return err
			}
		}
		mine = e.bandwidth()
		if s.cfg.Test.Verb == Read {
			if err := s.checkRead(e); err != nil {
				return err
			}
		}
		if !s.cfg.Bidirectional {
			s.cfg.Printf("%s", mine.line(s.cfg.Gbits))
			continue
		}
		if theirs, err = s.ctl.swapReport(ctx, mine); err != nil {
			return err
		}
		s.cfg.Printf("%s", mine.add(theirs).line(s.cfg.Gbits))
		if err := s.checkServed(ctx, theirs); err != nil {
			return err
		}
	}
	if s.cfg.Bidirectional {
		return nil
	}
	if err := s.barrier(ctx, "after the traffic"); err != nil {
		return err
	}
	if _, err = s.ctl.swapReport(ctx, mine); err != nil {
		return err
	}
	return s.barrier(ctx, "at the end")
}

// serve is the end whose memory others write, read and change.
func (s *session) serve(ctx context.Context) error {
	if err := s.barrier(ctx, "after the traffic"); err != nil {
		return err
	}
	theirs, err := s.ctl.swapReport(ctx, bwReport{})
	if err != nil {
		return err
	}
	s.cfg.Printf("%s", theirs.line(s.cfg.Gbits))
	s.res.Messages = theirs.iters
	if err := s.checkServed(ctx, theirs); err != nil {
		return err
	}
	return s.barrier(ctx, "at the end")
}

// sendBandwidth is the bandwidth of sends, at either end.
func (s *session) sendBandwidth(ctx context.Context) error {
	for _, size := range s.sizes {
		e, err := s.readyToReceive(size)
		if err != nil {
			return err
		}
		if err := s.barrier(ctx, "before the traffic"); err != nil {
			return err
		}
		var ended <-chan error
		if e.receives && !e.sends {
			ended = s.listen(ctx)
		}
		if err := s.runSize(ctx, e, nil, ended); err != nil {
			return err
		}
		if err := s.checkReceived(e); err != nil {
			return err
		}
		mine := e.bandwidth()
		if s.cfg.Bidirectional && s.cfg.Duration == 0 {
			theirs, err := s.ctl.swapReport(ctx, mine)
			if err != nil {
				return err
			}
			mine = mine.add(theirs)
		}
		s.cfg.Printf("%s", mine.line(s.cfg.Gbits))
		if s.cfg.All {
			if err := s.barrier(ctx, "after the traffic"); err != nil {
				return err
			}
		}
	}
	return s.barrier(ctx, "at the end")
}

// readyToReceive makes the engine of a size, with the receives it needs.
func (s *session) readyToReceive(size int) (*engine, error) {
	e := newEngine(s.cfg, s.dev, s.theirs, size)
	s.dev.fillSize(e)
	if !e.receives {
		return e, nil
	}
	return e, e.postAllReceives()
}

// latencies measures one size after the other.
func (s *session) latencies(ctx context.Context) error {
	t := s.cfg.Test
	if t.pulls() && !s.cfg.Client() {
		return s.barrier(ctx, "at the end")
	}
	for _, size := range s.sizes {
		e, err := s.readyToReceive(size)
		if err != nil {
			return err
		}
		if t.Verb == Send {
			if err := s.barrier(ctx, "before the traffic"); err != nil {
				return err
			}
		}
		var at rounds
		if err := s.runSize(ctx, e, &at, nil); err != nil {
			return err
		}
		if s.cfg.Duration > 0 {
			s.cfg.Printf("%s", e.durationLine())
		} else {
			s.cfg.Printf("%s", latency(size, s.cfg.Iters, at, t.perTrip()).line())
		}
		if err := s.checkLatency(e); err != nil {
			return err
		}
	}
	if t.Verb == Write {
		return nil // no word of goodbye
	}
	return s.barrier(ctx, "at the end")
}

// Checks of what arrived. s.peer says how much can be known.

func (s *session) checked(err error) error {
	s.res.Arrived = true
	s.res.Compared = s.peer.known
	return err
}

// places is how many messages of a queue pair are sure to have come.
func (s *session) places(count uint64) uint64 {
	if s.cfg.Duration > 0 {
		return 1
	}
	return count
}

// checkRead looks at what READs brought here.
func (s *session) checkRead(e *engine) error {
	for qp := range s.cfg.QPs {
		if err := s.peer.messages(s.dev.local(qp), qp, e.size, e.walk, 0, s.places(uint64(s.cfg.Iters)), false); err != nil {
			return err
		}
	}
	return s.checked(nil)
}

// checkReceived looks at what SENDs brought here.
func (s *session) checkReceived(e *engine) error {
	if !e.receives {
		return nil
	}
	for qp := range s.cfg.QPs {
		n := s.places(e.flows[qp].received)
		if err := s.peer.messages(s.dev.shared(qp), qp, e.size, e.recv, s.dev.lay.grh, min(n, e.flows[qp].received), true); err != nil {
			return err
		}
	}
	return s.checked(nil)
}

// checkServed looks at what the peer's writes and atomics left here.
func (s *session) checkServed(ctx context.Context, r bwReport) error {
	if s.cfg.Connection == hixl.UC {
		tools.Linger(ctx, grace, s.dev.nic) // nobody acknowledges: the word that all was sent may be first
	}
	n := r.iters / uint64(s.cfg.QPs)
	switch {
	case s.cfg.Test.Verb == Read:
		return nil
	case r.size == 0 || r.size > uint64(s.dev.lay.area):
		return &tools.DataError{Where: "the peer's report", Problem: fmt.Sprintf("%d bytes, with room for %d", r.size, s.dev.lay.area)}
	case s.cfg.Test.Verb == Atomic && s.cfg.Duration > 0:
		return nil
	case s.cfg.Test.Verb == Atomic:
		s.res.Arrived = true
		return s.dev.checkTarget(s.cfg, n)
	}
	for qp := range s.cfg.QPs {
		if err := s.peer.messages(s.dev.shared(qp), qp, int(r.size), s.dev.lay.walk(int(r.size)), 0, s.places(n), false); err != nil {
			return err
		}
	}
	return s.checked(nil)
}

// checkLatency looks at the one place that all messages of a latency test have.
func (s *session) checkLatency(e *engine) error {
	got, skip := s.dev.shared(0), 0
	switch s.cfg.Test.Verb {
	case Read:
		got = s.dev.local(0)
	case Send:
		skip = s.dev.lay.grh
	case Write: // whose last byte is the count that was waited for
		if !s.peer.known {
			return nil
		}
		return s.checked(s.peer.message(fmt.Sprintf("%d bytes", e.size), got[:e.size-1], 0, 0))
	case Atomic:
		return nil // looked at one by one
	}
	return s.checked(s.peer.message(fmt.Sprintf("%d bytes", e.size), got[skip:skip+e.size], 0, 0))
}
