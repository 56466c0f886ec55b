package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteComparison writes the medians by size, ratios first: ours by each baseline's,
// then what each contender did.
func (r *Report) WriteComparison(w io.Writer) error {
	var b strings.Builder
	r.heading(&b)
	for _, g := range r.grids() {
		g.text(&b, g.head...)
	}
	b.WriteString(r.comparisonLegend() + r.interrupted())
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteMarkdown writes the same for a document.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	c := &r.Config
	fmt.Fprintf(&b, "%s; %s, region %s, %s in turns, %s a cell.\n\n", Machine(), c.Mode+pinnedTo(c.Pinned), formatSize(c.Region), plural(c.Rounds, "round"), c.Duration)
	for _, g := range r.grids() {
		g.markdown(&b, g.head...)
	}
	b.WriteString(strings.ReplaceAll(strings.TrimSpace(r.comparisonLegend()+r.interrupted()), "\n", "<br>\n") + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// headed is a grid and what its names are.
type headed struct {
	grid
	head []string
}

// grids are the tables of a comparison, those without a row among them.
func (r *Report) grids() []*headed {
	sizes := r.sizes()
	mk := func(title string, head ...string) *headed { return &headed{grid{title: title, sizes: sizes}, head} }
	const byRound = " in the same round: median, and lowest..highest"
	bandwidth := mk("GB/s, ours / theirs"+byRound+" (more is better)", "ours", "theirs")
	latency := mk("latency, ours / theirs"+byRound+" (less is better)", "ours", "theirs")
	for i := range r.Ratios {
		q := &r.Ratios[i]
		bandwidth.set(q.Size, spreadCell(Spread{q.Median, q.Min, q.Max, q.Rounds}), q.Op.String(), q.Against.label())
		if q.Latency != nil {
			latency.set(q.Size, spreadCell(*q.Latency), q.Op.String(), q.Against.label())
		}
	}
	rates, times := mk("GB/s", "who"), mk("latency one way (half of there and back), us: p50, and p99", "who")
	cpu := mk("CPU s/GB, both processes", "who")
	for _, l := range r.lines() {
		for _, p := range l.points {
			rates.set(p.size, gridCell{figure: digits(p.gbPerS)}, l.name)
			cpu.set(p.size, gridCell{figure: digits(p.cpuPerGB)}, l.name)
			if p.oneWayUS > 0 {
				times.set(p.size, gridCell{digits(p.oneWayUS), atLeast(p.p99US)}, l.name)
			}
		}
	}
	return []*headed{bandwidth, latency, rates, times, cpu}
}

func spreadCell(s Spread) gridCell {
	return gridCell{digits(s.Median), digits(s.Min) + ".." + digits(s.Max)}
}

// atLeast writes what is more than nothing.
func atLeast(v float64) string {
	if v == 0 {
		return ""
	}
	return digits(v)
}

// sizes are those of all results and baselines, ascending.
func (r *Report) sizes() []int {
	sizes := each(r.Results, func(x Result) int { return x.Size })
	sizes = append(sizes, each(r.Baselines, func(x BaselineResult) int { return x.Size })...)
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// comparisonLegend explains what the grids show.
func (r *Report) comparisonLegend() string {
	return "Latency is of one message at a time, from before the post to the completion in hand, or to the answer.\n" +
		"GB is 1e9 bytes of payload; CPU is user and system time.\n" + r.contenders()
}
