package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Defaults of RunGoals.
const (
	// DefaultGoalRounds is how often each side of a goal is measured.
	DefaultGoalRounds = 7
	// DefaultGoalDuration is the timed part of each side, over all rounds.
	DefaultGoalDuration = 1400 * time.Millisecond
)

// GoalsReport is what was found of some goals.
type GoalsReport struct {
	// Rounds are those of a pass. All goals are measured in the first pass, then all in
	// the next.
	Rounds   int    `json:"rounds"`
	Passes   int    `json:"passes"`
	Duration string `json:"duration"`
	Seed     uint64 `json:"seed"`
	Mode     string `json:"mode"`
	// Pinned are the cores of this process and of the peer's; empty: not pinned.
	Pinned []string `json:"pinned,omitempty"`
	// TCP says how the TCP baseline's connection was set up, ForeignTCP names the
	// congestion control of foreign programs.
	TCP        string       `json:"tcp,omitempty"`
	ForeignTCP string       `json:"foreign_tcp,omitempty"`
	Goals      []GoalResult `json:"goals"`
}

// RunGoals measures goals one after the other. Of cfg it uses Duration (a side's
// timed part, over all rounds), Rounds, Passes, Seed, Local (each session takes the next
// two addresses from there), InProcess, Pin and PeerCommand. A goal whose baseline
// cannot run is reported as not measured; any other error ends the run and comes
// with what was measured before it.
func RunGoals(ctx context.Context, cfg Config, goals []Goal, p Progress) (*GoalsReport, error) {
	if cfg.Rounds == 0 {
		cfg.Rounds = DefaultGoalRounds
	}
	if cfg.Duration == 0 {
		cfg.Duration = DefaultGoalDuration
	}
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
	r := &GoalsReport{
		Rounds: cfg.Rounds, Duration: cfg.Duration.String(), Seed: cfg.Seed, Mode: modeProcesses,
		Goals: []GoalResult{}, Pinned: cfg.placed.lists(), Passes: max(cfg.Passes, 1),
	}
	if cfg.InProcess {
		r.Mode = modeInProcess
	}
	p.Begin(len(goals) * r.Passes)
	defer p.End()
	for pass := range r.Passes {
		for i, g := range goals {
			p.Step(g.Name)
			x, err := g.run(ctx, cfg, r)
			if err != nil {
				return r, fmt.Errorf("%s: %w", g.Name, err)
			}
			if pass == 0 {
				r.Goals = append(r.Goals, x)
			} else {
				r.Goals[i].again(&x)
			}
		}
	}
	return r, nil
}

// again adds what another pass found. A goal that could not be measured in one of
// them is not measured.
func (g *GoalResult) again(x *GoalResult) {
	if g.Verdict == VerdictNone || x.Verdict == VerdictNone {
		g.Verdict, g.Why = VerdictNone, cmp.Or(g.Why, x.Why)
		return
	}
	g.Measured = g.Measured.merge(&x.Measured)
	g.Verdict = g.Goal.verdict(&g.Measured)
}

// run measures one goal in sessions of its own, and tells r what baselines were.
func (g *Goal) run(ctx context.Context, cfg Config, r *GoalsReport) (_ GoalResult, err error) {
	x := GoalResult{Goal: *g, Verdict: VerdictNone}
	if g.needs != "" {
		if x.Why = cfg.absent(g.needs.kind()); x.Why != "" {
			return x, nil
		}
	}
	a := newArena(cfg)
	defer func() { err = errors.Join(err, a.close()) }()
	x.Measured, err = g.measure(ctx, a)
	if bad := (*ForeignError)(nil); errors.As(err, &bad) && ctx.Err() == nil {
		x.Why = bad.Error()
		return x, nil
	}
	r.TCP, r.ForeignTCP = cmp.Or(a.tcp, r.TCP), cmp.Or(a.foreign, r.ForeignTCP)
	if err == nil {
		x.Verdict = g.verdict(&x.Measured)
	}
	return x, err
}
