package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Goal is one thing that the datapath is held to: a figure of ours, most often
// against one of something else measured in turns in the same run.
type Goal struct {
	// Name is what the goal is run by, What what it says.
	Name string `json:"name"`
	What string `json:"what"`
	// Floor is what has to be reached and Aim what is wished for: at least, or at
	// most when AtMost is set. Unit is of the figure, "" for a ratio.
	Floor  float64 `json:"floor"`
	Aim    float64 `json:"aim"`
	AtMost bool    `json:"at_most,omitempty"`
	Unit   string  `json:"unit,omitempty"`

	// needs is the baseline without which there is nothing to measure.
	needs   Baseline
	measure func(ctx context.Context, a *arena) (Measured, error)
}

// Measured is what was found of a goal: the median of the rounds and their spread.
type Measured struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Rounds int     `json:"rounds"`
	// Ours and Theirs are the medians of the two sides, in SideUnit.
	Ours     float64 `json:"ours,omitempty"`
	Theirs   float64 `json:"theirs,omitempty"`
	SideUnit string  `json:"side_unit,omitempty"`
	// OurRounds and TheirRounds are the timed bandwidth parts, where there are any.
	OurRounds   []Round `json:"our_rounds,omitempty"`
	TheirRounds []Round `json:"their_rounds,omitempty"`
	// Passes are the medians of each pass, when there were several.
	Passes []float64 `json:"passes,omitempty"`

	found, ours, theirs []float64 // of all rounds
}

// found is the median and the extremes of one figure a round.
func found(v []float64) Measured {
	m := Measured{Rounds: len(v), found: v}
	if len(v) > 0 {
		m.Median, m.Min, m.Max = median(v), slices.Min(v), slices.Max(v)
	}
	return m
}

// merge is both of two passes, the first of which may be several already.
func (m *Measured) merge(next *Measured) Measured {
	if m.Rounds == 0 {
		return *next
	}
	all := found(slices.Concat(m.found, next.found))
	all.Passes = m.Passes
	if len(all.Passes) == 0 {
		all.Passes = []float64{m.Median}
	}
	all.Passes = append(all.Passes, next.Median)
	all.sides(slices.Concat(m.ours, next.ours), slices.Concat(m.theirs, next.theirs), next.SideUnit)
	all.OurRounds, all.TheirRounds = slices.Concat(m.OurRounds, next.OurRounds), slices.Concat(m.TheirRounds, next.TheirRounds)
	return all
}

// sides sets what the two sides were.
func (m *Measured) sides(ours, theirs []float64, unit string) {
	m.ours, m.theirs = ours, theirs
	m.Ours, m.Theirs, m.SideUnit = median(ours), median(theirs), unit
}

// Verdicts.
const (
	VerdictAim   = "aim"          // the aim is reached
	VerdictFloor = "floor"        // the floor is reached, the aim not
	VerdictShort = "short"        // neither
	VerdictNone  = "not measured" // Why says why not
)

// GoalResult is a goal and what was found of it.
type GoalResult struct {
	Goal
	Measured
	Verdict string `json:"verdict"`
	Why     string `json:"why,omitempty"`
}

// reached reports whether v is as good as want.
func (g *Goal) reached(v, want float64) bool {
	if g.AtMost {
		return v <= want
	}
	return v >= want
}

// worst is the figure that a goal is judged by: the median, or that of the pass which
// was furthest from it. One good pass does not make up for a bad one.
func (g *Goal) worst(m *Measured) float64 {
	v := m.Median
	for _, p := range m.Passes {
		if !g.reached(p, v) {
			v = p
		}
	}
	return v
}

// verdict judges a figure.
func (g *Goal) verdict(m *Measured) string {
	switch v := g.worst(m); {
	case g.reached(v, g.Aim):
		return VerdictAim
	case g.reached(v, g.Floor):
		return VerdictFloor
	default:
		return VerdictShort
	}
}

// Goals returns all goals in the order in which they are measured and shown.
func Goals() []Goal {
	return slices.Concat(bandwidthGoals, latencyGoals, messageGoals, costGoals, lossGoals, scaleGoals)
}

// GoalsNamed returns the goals of these names, all without any. A name that ends
// in "-" stands for all that begin with it.
func GoalsNamed(names []string) ([]Goal, error) {
	all := Goals()
	if len(names) == 0 {
		return all, nil
	}
	var out []Goal
	for _, name := range names {
		n := len(out)
		for _, g := range all {
			if g.Name == name || strings.HasSuffix(name, "-") && strings.HasPrefix(g.Name, name) {
				out = append(out, g)
			}
		}
		if len(out) == n {
			return nil, &FlagError{Given: fmt.Sprintf("goal %q", name), Allowed: goalNames(all), Do: "name one or several, or none for all"}
		}
	}
	return out, nil
}

func goalNames(goals []Goal) string {
	names := make([]string, len(goals))
	for i := range goals {
		names[i] = goals[i].Name
	}
	return strings.Join(names, ", ")
}
