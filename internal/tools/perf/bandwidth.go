package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
)

// errEnded ends the wait of a receiver whose peer has sent its last message.
var errEnded = errors.New("perf: the peer has finished")

// stream runs the traffic of a bandwidth test at this end, as far as it sends or
// receives, until its count or its time is reached and everything posted is
// complete. ended, if not nil, delivers when the peer is through.
func (e *engine) stream(ctx context.Context, ended <-chan error) error {
	if e.sends && (!e.receives || e.cfg.Client()) {
		e.time.begin(time.Now())
	}
	waiting, stop := e.untilEnd(ctx, ended)
	defer stop()
	timed := newTimed(waiting, &e.time)
	defer timed.stop()
	for !e.finished() {
		wait := timed.ctx() // by what finished has seen: the time may be over a moment later
		if err := e.postAll(); err != nil {
			return err
		}
		switch err := e.take(wait); {
		case errors.Is(err, errEnded):
			return e.missing()
		case errors.Is(err, context.DeadlineExceeded) && waiting.Err() == nil: // the duration's end
		case err != nil:
			return e.stalled(err)
		}
		if err := e.repost(); err != nil {
			return err
		}
	}
	return nil
}

// postAll posts what may be sent now. The server of a test in both directions
// waits for the first message.
func (e *engine) postAll() error {
	if !e.sends || !e.time.begun() || e.time.expired() {
		return nil
	}
	for i := range e.flows {
		if err := e.post(&e.flows[i]); err != nil {
			return err
		}
	}
	return nil
}

// finished reports whether the run is over.
func (e *engine) finished() bool {
	if e.time.duration > 0 {
		switch {
		case !e.time.expired():
			return false
		case e.receives:
			return e.sends // both ends stop then; a mere receiver goes on until the peer stops
		}
		for i := range e.flows {
			if e.flows[i].done != e.flows[i].posted {
				return false
			}
		}
		return true
	}
	all := uint64(e.cfg.Iters) * uint64(e.cfg.QPs)
	return (!e.sends || e.sent == all) && (!e.receives || e.received == all)
}

// timed is a context that wakes a run when its duration ends.
type timed struct {
	parent, until context.Context
	cancel        context.CancelFunc
	time          *clock
}

func newTimed(parent context.Context, c *clock) *timed { return &timed{parent: parent, time: c} }

// ctx returns what to wait with now: until the duration's end, if that was not seen
// yet. It does not look at the time, so that nobody waits for ever who has not asked
// since whether the run is over.
func (t *timed) ctx() context.Context {
	if t.time.duration == 0 || !t.time.begun() || t.time.over {
		return t.parent
	}
	if t.until == nil {
		t.until, t.cancel = context.WithDeadline(t.parent, t.time.end())
	}
	return t.until
}

func (t *timed) stop() {
	if t.cancel != nil {
		t.cancel()
	}
}

// grace is how long completions may lag behind the word that all was sent.
const grace = 300 * time.Millisecond

// untilEnd returns a context that ends with errEnded some time after the peer is
// through, once nothing more arrives, or with what became of the peer.
func (e *engine) untilEnd(ctx context.Context, ended <-chan error) (context.Context, func()) {
	if ended == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-ctx.Done():
		case err := <-ended:
			if err == nil {
				tools.Linger(ctx, grace, e.d.nic)
				err = errEnded
			}
			cancel(err)
		}
	}()
	return ctx, func() { cancel(nil); <-gone }
}

// missing says what never came, if anything.
func (e *engine) missing() error {
	all := uint64(e.cfg.Iters) * uint64(e.cfg.QPs)
	if e.cfg.Duration > 0 || e.received == all {
		return nil
	}
	why := "give both ends the same -n and -q"
	if e.cfg.Connection != hixl.RC {
		why = fmt.Sprintf("%v does not send lost ones again", e.cfg.Connection)
	}
	return &tools.DataError{Where: fmt.Sprintf("%d bytes", e.size), Problem: fmt.Sprintf("%d of %d messages arrived; %s", e.received, all, why)}
}

// stalled adds to an error how far the run was.
func (e *engine) stalled(err error) error {
	if !errors.Is(err, tools.ErrSilent) {
		return err
	}
	of := ""
	if e.cfg.Duration == 0 {
		of = fmt.Sprintf(" of %d", uint64(e.cfg.Iters)*uint64(e.cfg.QPs))
	}
	return fmt.Errorf("%d bytes: %d messages sent and %d received%s: %w", e.size, e.sent, e.received, of, err)
}
