package bench

import (
	"context"
	"time"
)

// manyQPs is how many queue pairs a busy host has.
const manyQPs = 1000

// scaleGoals are about many queue pairs.
var scaleGoals = []Goal{
	{
		Name: "qps-1000", What: "1,000 queue pairs over one NIC, total WRITE 4 KiB rate against one", Floor: 0.7, Aim: 1.0,
		measure: against(byMessages, side{op: OpWrite, size: 4 << 10, qps: manyQPs}, side{op: OpWrite, size: 4 << 10}),
	},
	{
		Name: "idle-1000", What: "CPU of both processes with 1,000 connected queue pairs and nothing to do", Floor: 1, Aim: 0.05, AtMost: true,
		Unit: "% of a core", measure: idle,
	},
}

// idleSettle is how long after the last message a connection counts as idle:
// whoever waits looks for packets for less.
const idleSettle = 100 * time.Millisecond

// idle measures the processor time of connected queue pairs that have been used
// and have nothing to do.
func idle(ctx context.Context, a *arena) (Measured, error) {
	what := side{op: OpWrite, size: 64, qps: manyQPs}
	s, ctx, err := a.session(ctx, &what)
	if err != nil {
		return Measured{}, err
	}
	c := a.contender(s, &what, budget{bandwidth: minSlice})
	if err := c.round(ctx, 0); err != nil {
		return Measured{}, explain(ctx, err)
	}
	var used []float64
	for range a.cfg.Rounds {
		share, err := idleShare(ctx, s, max(a.cfg.Duration/time.Duration(a.cfg.Rounds), idleSettle))
		if err != nil {
			return Measured{}, err
		}
		used = append(used, 100*share)
	}
	return found(used), c.shut(ctx)
}

// idleShare is the processors' time for d, of d.
func idleShare(ctx context.Context, s *session, d time.Duration) (float64, error) {
	if err := pause(ctx, idleSettle); err != nil {
		return 0, err
	}
	before, err := s.cpu(ctx)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := pause(ctx, d); err != nil {
		return 0, err
	}
	elapsed := time.Since(start)
	after, err := s.cpu(ctx)
	return per(float64(after-before), float64(elapsed)), err
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
