package bench

import (
	"context"
	"errors"
	"time"
)

// mover is one way to move messages: an operation of ours or a baseline.
type mover interface {
	// open makes connections; it is called before the first round and after close.
	open(ctx context.Context) error
	// prepare puts the pattern of key into the source and clears the destination.
	prepare(ctx context.Context, key uint64) error
	// stream moves messages until the time is over and at least least went, and
	// waits until all have arrived. It returns how many and how long that took.
	stream(ctx context.Context, d time.Duration, least uint64) (uint64, time.Duration, error)
	// pingPong moves messages one at a time and records how long each takes.
	pingPong(ctx context.Context, d time.Duration, least uint64, h histogram) error
	// usage is what the processes that take part have spent so far.
	usage(ctx context.Context) (usage, error)
	// verify checks what the messages since prepare left in memory.
	verify(ctx context.Context, key uint64) error
	// close ends connections.
	close(ctx context.Context) error
}

// walking is a mover that can say how many bytes its messages walk
// through.
type walking interface{ walks() int }

// warming is a mover that warms up by itself in each timed part.
type warming interface{ warms() bool }

// contender is a mover at one size, measured once a round.
type contender struct {
	mover
	name   string
	size   int
	id     int // tells its pattern from all others'
	seed   uint64
	budget budget
	series *series
	ready  bool
	// failed is why a foreign program is left out from now on.
	failed error
}

// foreign reports whether another program is measured.
func (c *contender) foreign() bool {
	_, ok := c.mover.(*foreignMover)
	return ok
}

// round measures and verifies the contender once.
func (c *contender) round(ctx context.Context, n int) error {
	err := c.measure(ctx, n)
	if err == nil {
		return nil
	}
	if m := (*MismatchError)(nil); errors.As(err, &m) {
		m.Op, m.Size, m.Round = c.name, c.size, n
		return m
	}
	return &CellError{Op: c.name, Size: c.size, Err: explain(ctx, err)}
}

// explain returns why ctx ended, if it did: whatever failed failed because of
// that. Wrong bytes stay wrong bytes.
func explain(ctx context.Context, err error) error {
	if why := context.Cause(ctx); err != nil && why != nil && !errors.Is(err, ErrVerify) {
		return why
	}
	return err
}

func (c *contender) measure(ctx context.Context, n int) error {
	if !c.ready {
		if err := c.open(ctx); err != nil {
			return err
		}
		c.ready = true
	}
	key := roundKey(c.seed, c.id, n)
	if err := c.prepare(ctx, key); err != nil {
		return err
	}
	h := newHistogram()
	x, spent, err := c.timed(ctx, h)
	if err != nil {
		return err
	}
	if err := c.verify(ctx, key); err != nil {
		return err
	}
	c.series.add(x, h, spent) // an interrupted run shows only what was verified
	return nil
}

// timed runs the warm-up and the timed parts.
func (c *contender) timed(ctx context.Context, h histogram) (x sample, spent usage, err error) {
	b := &c.budget
	idle, err := c.usage(ctx)
	if err != nil {
		return x, spent, err
	}
	if w, ok := c.mover.(warming); !ok || !w.warms() {
		if _, _, err := c.stream(ctx, b.warm, 1); err != nil {
			return x, spent, err
		}
	}
	before, err := c.usage(ctx)
	if err != nil {
		return x, spent, err
	}
	if b.bandwidth > 0 {
		if x.messages, x.elapsed, err = c.stream(ctx, b.bandwidth, b.minMessages); err != nil {
			return x, spent, err
		}
	}
	after, err := c.usage(ctx)
	if err != nil {
		return x, spent, err
	}
	x.spent = after.since(before)
	x.bytes, x.cpu, x.mallocs = x.messages*uint64(c.size), x.spent.CPU, x.spent.Mallocs
	if b.latency > 0 {
		if err := c.pingPong(ctx, b.latency, b.minLatency, h); err != nil {
			return x, spent, err
		}
	}
	last, err := c.usage(ctx)
	return x, last.since(idle), err
}

// measured reports whether a round was finished.
func (c *contender) measured() bool { return len(c.series.samples) > 0 }

// shut closes the contender's connections, if it has any.
func (c *contender) shut(ctx context.Context) error {
	if !c.ready {
		return nil
	}
	c.ready = false
	return c.close(ctx)
}
