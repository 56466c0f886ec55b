package bench

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// Progress hears how far a run is. Its methods are called from the goroutine
// that called [Run].
type Progress interface {
	// Begin says how many steps there will be.
	Begin(steps int)
	// Step says what is measured now.
	Step(what string)
	// End comes once, whether the run finished or failed.
	End()
}

// Run measures what cfg says and returns the report, or the first error: a
// *[FlagError], a *[MismatchError] when bytes or counters were wrong, a *[PeerError]
// when the peer died, a *[CellError] around what failed in a cell (such as a
// *cq.StatusError), or the context's cause. When ctx ends after at least one cell
// has finished a round, it returns both: the error, and a report of what was
// finished, with Interrupted set. p may be nil.
func Run(ctx context.Context, cfg Config, p Progress) (rep *Report, err error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if p == nil {
		p = quiet{}
	}
	unpin, err := cfg.pin()
	if err != nil {
		return nil, err
	}
	defer unpin()
	cfg.Baselines, cfg.missing = cfg.present()
	s, running, err := startSession(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := s.close(); err == nil {
			err = e
		}
	}()
	pl := newPlan(cfg, s)
	if err := pl.run(running, p); err != nil {
		if ctx.Err() == nil || errors.Is(err, ErrVerify) {
			return nil, err
		}
		return pl.unfinished(), err
	}
	return pl.report(), nil
}

// unfinished is the report of a run that was interrupted, nil if no cell has
// finished a round.
func (p *plan) unfinished() *Report {
	r := p.report()
	if len(r.Results) == 0 {
		return nil
	}
	r.Interrupted = true
	return r
}

type quiet struct{}

func (quiet) Begin(int)   {}
func (quiet) Step(string) {}
func (quiet) End()        {}

// plan is the contenders of a run in the order of a round: those of one size
// together, the baselines first.
type plan struct {
	cfg   Config
	s     *session
	order []*contender
	cells []cell                 // of order, parallel to ours
	ours  []*contender           // cells
	base  map[baseKey]*contender // baselines
	// keep says that connections stay open between rounds.
	keep bool
}

type baseKey struct {
	name Baseline
	size int
}

func newPlan(cfg Config, s *session) *plan {
	p := &plan{cfg: cfg, s: s, base: map[baseKey]*contender{}, cells: cfg.cells()}
	open := 0
	for _, ce := range p.cells {
		for _, b := range cfg.Baselines {
			p.addBaseline(b, ce.Size)
		}
		c := &contender{
			mover: &cellMover{s: s, cell: ce}, name: ce.Op.String(), size: ce.Size, id: ce.ID, seed: cfg.Seed,
			budget: cfg.budget(ce), series: newSeries(),
		}
		p.ours = append(p.ours, c)
		p.order = append(p.order, c)
		open += ce.QPs
	}
	p.keep = open <= maxOpenQPs
	return p
}

// addBaseline adds a baseline at a size that has none yet.
func (p *plan) addBaseline(b Baseline, size int) {
	key := baseKey{b, size}
	if p.base[key] != nil {
		return
	}
	// Numbered below zero, so that no cell shares the pattern.
	c := &contender{name: string(b), size: size, id: -1 - len(p.base), seed: p.cfg.Seed, series: newSeries()}
	c.budget = p.cfg.budget(cell{Size: size, Depth: 1})
	c.mover = b.kind().open(p.s, size)
	p.base[key] = c
	p.order = append(p.order, c)
}

func (p *plan) run(ctx context.Context, pr Progress) error {
	pr.Begin(len(p.order) * p.cfg.Rounds)
	defer pr.End()
	for n := range p.cfg.Rounds {
		for _, c := range p.order {
			pr.Step(c.name + " " + formatSize(c.size))
			if c.failed != nil {
				continue
			}
			if err := c.round(ctx, n); err != nil {
				if c.foreign() && ctx.Err() == nil { // the rest of the run is as good without it
					c.failed = err
					continue
				}
				return p.s.why(ctx, err)
			}
			if !p.keep {
				if err := c.shut(ctx); err != nil {
					return err
				}
			}
		}
	}
	var errs []error
	for _, c := range p.order {
		errs = append(errs, c.shut(ctx))
	}
	return errors.Join(errs...)
}

// report tells of what has finished a round at least.
func (p *plan) report() *Report {
	r := newReport(p.cfg)
	r.Config.Machine = Machine()
	r.Config.Local, r.Config.Peer, r.Config.Mode = p.s.ep.nic.Address().String(), p.s.peer.Addr.String(), p.s.mode
	if here, there := p.s.ep.describe(), p.s.peer.Memory; here+there != "" {
		r.Config.Memory, r.Config.PeerMemory = cmp.Or(here, HostMemory), cmp.Or(there, HostMemory)
	}
	for i, c := range p.ours {
		if !c.measured() {
			continue
		}
		r.Results = append(r.Results, p.result(c, p.cells[i]))
		for _, b := range p.cfg.Baselines {
			if q := p.ratio(c, p.cells[i], b); q.Rounds > 0 {
				r.Ratios = append(r.Ratios, q)
			}
		}
	}
	for _, b := range p.cfg.Baselines {
		for _, c := range p.order {
			if p.base[baseKey{b, c.size}] == c && c.failed != nil {
				r.Missing = append(r.Missing, Missing{b, "failed: " + c.failed.Error()})
			}
			if p.base[baseKey{b, c.size}] == c && c.measured() {
				r.Baselines = append(r.Baselines, c.baseline(b))
				switch m := c.mover.(type) {
				case *tcpMover:
					r.Config.TCP = m.detail
				case *foreignMover:
					r.Config.ForeignTCP = p.s.nets.net.congestion
				}
			}
		}
	}
	slices.SortStableFunc(r.Results, func(a, b Result) int { return int(a.Op) - int(b.Op) })
	slices.SortStableFunc(r.Baselines, func(a, b BaselineResult) int {
		return cmp.Or(cmp.Compare(slices.Index(p.cfg.Baselines, a.Name), slices.Index(p.cfg.Baselines, b.Name)), a.Size-b.Size)
	})
	slices.SortStableFunc(r.Ratios, func(a, b Ratio) int { return int(a.Op) - int(b.Op) })
	return r
}

// result shows the MTU only when the run has several.
func (p *plan) result(c *contender, ce cell) Result {
	r := c.series.result(ce)
	r.Walks = ce.walks(p.cfg.Region)
	if len(p.cfg.MTUs) > 1 {
		r.MTU = ce.MTU
	}
	return r
}

// ratio names what varies in this run, so that each ratio has one result.
func (p *plan) ratio(c *contender, ce cell, against Baseline) Ratio {
	r := ratio(c.series, p.base[baseKey{against, ce.Size}].series)
	r.Op, r.Size, r.Against = ce.Op, ce.Size, against
	if len(p.cfg.QPs) > 1 {
		r.QPs = ce.QPs
	}
	if len(p.cfg.Depths) > 1 {
		r.Depth = ce.Depth
	}
	if len(p.cfg.MTUs) > 1 {
		r.MTU = ce.MTU
	}
	return r
}

func (c *contender) baseline(b Baseline) BaselineResult {
	r := BaselineResult{Name: b, Size: c.size, GBPerS: median(c.series.gb()), CPUPerGB: c.series.cpuPerGB(), Rounds: c.series.rounds()}
	if w, ok := c.mover.(walking); ok {
		r.Walks = w.walks()
	}
	if c.series.hist.h.TotalCount() > 0 {
		l := c.series.hist.latency()
		if b.kind().program != nil { // each run tells one figure
			l.P99, l.P999 = 0, 0
		}
		r.LatencyUS = &l
	}
	return r
}
