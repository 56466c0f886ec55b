package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteJSON writes the report as one indented object and a newline.
func (r *GoalsReport) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

var goalsHead = []string{"goal", "floor", "aim", "median", "spread", "ours", "theirs", "verdict"}

// WriteTable writes a line a goal, and what each of them says.
func (r *GoalsReport) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "hixl-bench floors: %s, %s, seed %d, ICRC on, every byte of ours, tcp, shm and memcpy verified outside the timed part\n\n",
		r.Mode+pinnedTo(r.Pinned), r.turns(), r.Seed)
	rows := [][]string{goalsHead}
	for i := range r.Goals {
		rows = append(rows, r.Goals[i].cells())
	}
	writeColumns(&b, rows, 1)
	b.WriteByte('\n')
	for i := range r.Goals {
		g := &r.Goals[i]
		fmt.Fprintf(&b, "%s: %s", g.Name, g.What)
		if g.Why != "" {
			b.WriteString(": not measured: " + g.Why)
		}
		b.WriteString(".\n")
	}
	b.WriteString(r.baselines())
	_, err := io.WriteString(w, b.String())
	return err
}

// baselines says how those that were measured were set up, and how we were where it
// differs.
func (r *GoalsReport) baselines() (s string) {
	if r.latencies() {
		s = "latencies of ours: hixl.Config.Progress is LowLatency at both ends.\n"
	}
	if r.TCP != "" {
		s += "tcp: " + r.TCP + "; one way is half of a message and an 8-byte answer.\n"
	}
	if r.ForeignTCP != "" {
		s += "ucx: " + ucxPut.about + "; TCP congestion control " + r.ForeignTCP + ".\n"
	}
	return s + r.disturbed()
}

// turns says how often what was measured.
func (r *GoalsReport) turns() string {
	s := fmt.Sprintf("%s in turns, %s a side", plural(r.Rounds, "round"), r.Duration)
	if r.Passes > 1 {
		s = fmt.Sprintf("%d passes of %s", r.Passes, s)
	}
	return s
}

// disturbed says how quiet the machine was.
func (r *GoalsReport) disturbed() string {
	n, of := 0, 0
	for i := range r.Goals {
		for k := range r.Goals[i].OurRounds {
			of++
			if r.Goals[i].OurRounds[k].disturbed() {
				n++
			}
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("not quiet: in %d of %s of ours, threads waited for a processor for more than a tenth of the time.\n", n, plural(of, "round"))
}

// latencies reports whether a latency of ours was measured.
func (r *GoalsReport) latencies() bool {
	return slices.ContainsFunc(r.Goals, func(g GoalResult) bool { return g.SideUnit == byLatency.unit })
}

// WriteMarkdown writes the goals as a table for a document.
func (r *GoalsReport) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s; %s, %s.\n\n", Machine(), r.Mode+pinnedTo(r.Pinned), r.turns())
	b.WriteString("| goal | | floor | aim | median [spread] | ours | theirs | verdict |\n|---|---|---|---|---|---|---|---|\n")
	for i := range r.Goals {
		g := &r.Goals[i]
		c := g.cells()
		if g.Why != "" {
			c[7] += ": " + g.Why
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | **%s** %s | %s | %s | %s |\n", c[0], g.What, c[1], c[2], c[3], c[4], c[5], c[6], c[7])
	}
	if s := r.baselines(); s != "" {
		b.WriteString("\n" + strings.ReplaceAll(strings.TrimSpace(s), "\n", "<br>\n") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cells is a goal's line.
func (g *GoalResult) cells() []string {
	bound := ">= "
	if g.AtMost {
		bound = "<= "
	}
	row := []string{g.Name, bound + plain(g.Floor), bound + plain(g.Aim), "-", "", "", "", g.Verdict}
	if g.Rounds == 0 {
		return row
	}
	if len(g.Passes) > 0 {
		row[7] += " (passes: " + strings.Join(each(g.Passes, digits), ", ") + ")"
	}
	row[3], row[4] = digits(g.Median), fmt.Sprintf("[%s..%s]", digits(g.Min), digits(g.Max))
	if g.SideUnit != "" {
		row[5], row[6] = digits(g.Ours)+" "+g.SideUnit, digits(g.Theirs)+" "+g.SideUnit
	} else {
		row[5] = digits(g.Median) + " " + g.Unit
	}
	return row
}

// plain writes a goal's bound.
func plain(v float64) string { return fmt.Sprint(v) }
