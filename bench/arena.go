package bench

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"
)

// arena is where goals are measured: it opens a session for each region and each
// kind of faults that a goal needs, side by side, so that both sides of a ratio
// can be measured in turns.
type arena struct {
	cfg      Config
	sessions map[arenaKey]*session
	next     netip.Addr // of the next session
	ids      int
	// tcp says how the TCP baseline's connection was set up, foreign the congestion
	// control of foreign programs; "" when none was measured.
	tcp, foreign string
}

type arenaKey struct {
	region     int
	faults     Faults
	lowLatency bool
}

// side is one side of a ratio: an operation of ours or a baseline.
type side struct {
	op               Op
	baseline         Baseline // "": ours
	size, depth, mtu int
	qps              int // 0: 1
	list             int // messages posted at once; 0: a quarter of depth
	region           int // 0: DefaultRegion
	faults           Faults
	lowLatency       bool
}

func newArena(cfg Config) *arena {
	return &arena{cfg: cfg, sessions: map[arenaKey]*session{}, next: cfg.Local}
}

// session returns the session of a side, and the context that ends with it.
func (a *arena) session(ctx context.Context, s *side) (*session, context.Context, error) {
	key := arenaKey{cmp.Or(s.region, DefaultRegion), s.faults, s.lowLatency}
	if got := a.sessions[key]; got != nil {
		return got, ctx, nil
	}
	cfg := a.cfg
	cfg.Region, cfg.Faults, cfg.LowLatency = key.region, key.faults, key.lowLatency
	cfg.Local, cfg.PeerLocal = a.next, a.next.Next()
	a.next = cfg.PeerLocal.Next()
	got, running, err := startSession(ctx, cfg)
	if err == nil {
		a.sessions[key] = got
	}
	return got, running, err
}

// close ends all sessions.
func (a *arena) close() error {
	var errs []error
	for _, s := range a.sessions {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// contender makes what measures a side.
func (a *arena) contender(s *session, what *side, b budget) *contender {
	a.ids++
	c := &contender{size: what.size, id: a.ids, seed: a.cfg.Seed, series: newSeries(), budget: b}
	if what.baseline != "" {
		c.name, c.mover = string(what.baseline), what.baseline.kind().open(s, what.size)
		return c
	}
	ce := newCell(a.ids, what.op, what.size, cmp.Or(what.qps, 1), what.depth, what.mtu)
	ce.List = what.list
	c.budget.minMessages = max(c.budget.minMessages, uint64(2*ce.Depth*ce.QPs))
	c.name, c.mover = what.op.String(), &cellMover{s: s, cell: ce}
	return c
}

// metric is what of a round is compared.
type metric struct {
	of   func(sample) float64
	unit string
	// latency: only the latency part is run; else only the bandwidth part.
	latency bool
}

var (
	byBandwidth = metric{of: sample.gbPerS, unit: "GB/s"}
	byMessages  = metric{of: func(s sample) float64 { return s.msgsPerS() / 1e6 }, unit: "M/s"}
	byCPU       = metric{of: sample.cpuPerGB, unit: "s/GB"}
	byLatency   = metric{of: func(s sample) float64 { return float64(s.oneWay) / 1e3 }, unit: "us", latency: true}
)

// budget is how long one side is measured in one round.
func (a *arena) budget(m metric) budget {
	d := max(a.cfg.Duration/time.Duration(a.cfg.Rounds), minSlice)
	if m.latency {
		return budget{warm: d / 10, latency: d, minLatency: 100}
	}
	return budget{warm: d / 10, bandwidth: d}
}

// ratio measures two sides in turns and compares them round by round.
func (a *arena) ratio(ctx context.Context, m metric, ours, theirs side) (Measured, error) {
	both := [2]*contender{}
	for i, what := range []*side{&ours, &theirs} {
		s, running, err := a.session(ctx, what)
		if err != nil {
			return Measured{}, err
		}
		ctx = running
		both[i] = a.contender(s, what, a.budget(m))
	}
	err := a.rounds(ctx, both)
	for _, c := range both {
		err = errors.Join(err, c.shut(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return Measured{}, err
	}
	a.learn(both)
	return compare(m, both[0].series, both[1].series), nil
}

// learn keeps how baselines were set up.
func (a *arena) learn(both [2]*contender) {
	for _, c := range both {
		switch m := c.mover.(type) {
		case *tcpMover:
			a.tcp = m.detail
		case *foreignMover:
			a.foreign = m.nets.net.congestion
		}
	}
}

// rounds measures both, each of them first every other time.
func (a *arena) rounds(ctx context.Context, both [2]*contender) error {
	for n := range a.cfg.Rounds {
		order := both
		if n%2 == 1 {
			slices.Reverse(order[:])
		}
		for _, c := range order {
			if err := c.round(ctx, n); err != nil {
				return explain(ctx, err)
			}
		}
	}
	return nil
}

// compare divides round by round.
func compare(m metric, ours, theirs *series) Measured {
	a, b := each(ours.samples, m.of), each(theirs.samples, m.of)
	q := make([]float64, min(len(a), len(b)))
	for i := range q {
		q[i] = per(a[i], b[i])
	}
	x := found(q)
	x.sides(a, b, m.unit)
	x.OurRounds, x.TheirRounds = ours.rounds(), theirs.rounds()
	return x
}
