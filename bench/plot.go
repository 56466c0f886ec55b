package bench

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// WritePlot writes the report as one HTML page that needs nothing else: bandwidth
// and latency of all contenders by size, both axes logarithmic. It is well-formed
// XML and follows the reader's choice of light or dark.
func (r *Report) WritePlot(w io.Writer) error {
	lines := r.lines()
	var b strings.Builder
	b.WriteString(plotHead)
	c := &r.Config
	fmt.Fprintf(&b, "<h1>hixl-bench compare</h1>\n<p>%s</p>\n", html.EscapeString(fmt.Sprintf(
		"%s; %s, region %s, %s in turns, medians, seed %d; every byte of %s verified. %s",
		c.Machine, c.Mode+pinnedTo(c.Pinned), formatSize(c.Region), plural(c.Rounds, "round"), c.Seed, r.compared(), r.interrupted())))
	chart{
		title: "Bandwidth", unit: "GB/s", value: func(p point) float64 { return p.gbPerS },
	}.write(&b, lines)
	chart{
		title: "Latency, one message at a time, half of there and back", unit: "us", value: func(p point) float64 { return p.oneWayUS },
	}.write(&b, lines)
	fmt.Fprintf(&b, "<pre>%s</pre>\n</body>\n</html>\n", html.EscapeString(r.comparisonLegend()))
	_, err := io.WriteString(w, b.String())
	return err
}

const plotHead = `<!DOCTYPE html>
<html lang="en" xmlns="http://www.w3.org/1999/xhtml">
<head>
<meta charset="utf-8"/>
<title>hixl-bench compare</title>
<style>
:root { color-scheme: light dark; --ink: #1b1f24; --grid: #d4d9de; --paper: #ffffff; --l: 40%; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --grid: #3c4248; --paper: #16191d; --l: 66%; } }
body { background: var(--paper); color: var(--ink); font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 920px; padding: 0 1em; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 12px; }
.grid { stroke: var(--grid); stroke-width: 1; } .line { fill: none; stroke-width: 2; } .ours { stroke-width: 3.5; }
pre { white-space: pre-wrap; font-size: 12px; }
</style>
</head>
<body>
`

// plotLine is one contender.
type plotLine struct {
	name   string
	ours   bool
	points []point
}

// point is a contender at one size. Latencies are halves of there and back, 0 for what
// was not measured.
type point struct {
	size                              int
	gbPerS, oneWayUS, p99US, cpuPerGB float64
}

// lines are the contenders in the order of the table, each with its sizes. Of
// several depths or queue pairs the first is shown.
func (r *Report) lines() []plotLine {
	var out []plotLine
	add := func(name string, ours bool, p point) {
		i := slices.IndexFunc(out, func(l plotLine) bool { return l.name == name })
		if i < 0 {
			i = len(out)
			out = append(out, plotLine{name: name, ours: ours})
		}
		l := &out[i]
		if !slices.ContainsFunc(l.points, func(q point) bool { return q.size == p.size }) {
			l.points = append(l.points, p)
		}
	}
	for i := range r.Results {
		x := &r.Results[i]
		add("hixl "+x.Op.String(), true, point{x.Size, x.GBPerS, x.LatencyUS.P50 / 2, x.LatencyUS.P99 / 2, x.CPUPerGB})
	}
	for i := range r.Baselines {
		x := &r.Baselines[i]
		p := point{size: x.Size, gbPerS: x.GBPerS, cpuPerGB: x.CPUPerGB}
		if x.LatencyUS != nil {
			p.oneWayUS, p.p99US = x.LatencyUS.P50/2, x.LatencyUS.P99/2
		}
		add(x.Name.label(), false, p)
	}
	return out
}

// chart is one pair of axes.
type chart struct {
	title, unit string
	value       func(point) float64
}

// The picture, in its own units; legend lines stand right of the axes.
const (
	plotWidth, plotHeight   = 880, 420
	plotLeft, plotRight     = 70, 700
	plotTop, plotBottom     = 30, 370
	plotLegend, plotLineGap = 715, 20
)

func (c chart) write(b *strings.Builder, lines []plotLine) {
	x, y, ok := c.axes(lines)
	fmt.Fprintf(b, "<h2>%s</h2>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s by size\">\n",
		html.EscapeString(c.title), plotWidth, plotHeight, html.EscapeString(c.title))
	if ok {
		c.grid(b, lines, x, y)
		at := plotTop + plotLineGap/2
		for i, l := range lines {
			if c.line(b, l, i, len(lines), at, x, y) {
				at += plotLineGap
			}
		}
	}
	b.WriteString("</svg>\n")
}

// axis maps a value to a place, logarithmically.
type axis struct{ lo, hi, from, to float64 }

func (a axis) at(v float64) float64 {
	if a.hi == a.lo {
		return (a.from + a.to) / 2
	}
	return a.from + (a.to-a.from)*(math.Log(v)-math.Log(a.lo))/(math.Log(a.hi)-math.Log(a.lo))
}

// axes span all points, the y axis whole powers of ten.
func (c chart) axes(lines []plotLine) (x, y axis, ok bool) {
	x = axis{lo: math.Inf(1), from: plotLeft, to: plotRight}
	y = axis{lo: math.Inf(1), from: plotBottom, to: plotTop}
	for _, l := range lines {
		for _, p := range l.points {
			if v := c.value(p); v > 0 {
				ok = true
				x.lo, x.hi = min(x.lo, float64(p.size)), max(x.hi, float64(p.size))
				y.lo, y.hi = min(y.lo, v), max(y.hi, v)
			}
		}
	}
	if ok {
		y.lo, y.hi = math.Pow(10, math.Floor(math.Log10(y.lo))), math.Pow(10, math.Ceil(math.Log10(y.hi)))
		if y.lo == y.hi {
			y.hi *= 10
		}
	}
	return x, y, ok
}

// grid draws a line for each size and each power of ten.
func (c chart) grid(b *strings.Builder, lines []plotLine, x, y axis) {
	var sizes []int
	for _, l := range lines {
		for _, p := range l.points {
			sizes = append(sizes, p.size)
		}
	}
	slices.Sort(sizes)
	for _, s := range slices.Compact(sizes) {
		if float64(s) < x.lo || float64(s) > x.hi {
			continue
		}
		at := x.at(float64(s))
		fmt.Fprintf(b, "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
			at, plotTop, at, plotBottom, at, plotBottom+18, formatSize(s))
	}
	for e := int(math.Round(math.Log10(y.lo))); e <= int(math.Round(math.Log10(y.hi))); e++ {
		at := y.at(math.Pow10(e))
		fmt.Fprintf(b, "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			plotLeft, at, plotRight, at, plotLeft-8, at+4, strconv.FormatFloat(math.Pow10(e), 'f', -1, 64))
	}
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", plotLeft-8, plotTop-14, html.EscapeString(c.unit))
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">size of a message, bytes</text>\n", (plotLeft+plotRight)/2, plotBottom+40)
}

// line draws one contender and its line of the legend, at a height. False: it has
// nothing to show here.
func (c chart) line(b *strings.Builder, l plotLine, i, n, at int, x, y axis) bool {
	var path, dots strings.Builder
	// Hues apart from each other; dashes tell what is not ours without colours.
	color := fmt.Sprintf("hsl(%d 75%% var(--l))", 360*i/n)
	for _, p := range l.points {
		v := c.value(p)
		if v <= 0 {
			continue
		}
		fmt.Fprintf(&path, "%.1f,%.1f ", x.at(float64(p.size)), y.at(v))
		fmt.Fprintf(&dots, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" style=\"fill:%s\"><title>%s %s: %s %s</title></circle>\n",
			x.at(float64(p.size)), y.at(v), color, html.EscapeString(l.name), formatSize(p.size), digits(v), c.unit)
	}
	if path.Len() == 0 {
		return false
	}
	class, dash := "line ours", ""
	if !l.ours {
		class, dash = "line", " stroke-dasharray=\"6 3\""
	}
	fmt.Fprintf(b, "<polyline class=\"%s\" style=\"stroke:%s\"%s points=\"%s\"/>\n%s", class, color, dash, strings.TrimSpace(path.String()), dots.String())
	fmt.Fprintf(b, "<line class=\"%s\" style=\"stroke:%s\"%s x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
		class, color, dash, plotLegend, at, plotLegend+26, at, plotLegend+32, at+4, html.EscapeString(l.name))
	return true
}
