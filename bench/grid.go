package bench

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// grid shows one figure of several contenders by size, and below each its spread, or
// another figure.
type grid struct {
	title string
	sizes []int
	rows  []gridRow
}

type gridRow struct {
	name  []string // a cell each
	cells map[int]gridCell
}

type gridCell struct{ figure, below string }

// nameless is a row's cell of a size that has none.
var nameless = gridCell{figure: "-"}

// set puts a cell in the row of a name, which is added behind the others.
func (g *grid) set(size int, c gridCell, name ...string) {
	i := slices.IndexFunc(g.rows, func(r gridRow) bool { return slices.Equal(r.name, name) })
	if i < 0 {
		i = len(g.rows)
		g.rows = append(g.rows, gridRow{name, map[int]gridCell{}})
	}
	if _, twice := g.rows[i].cells[size]; !twice { // of several depths the first
		g.rows[i].cells[size] = c
	}
}

// cell is what stands in a row at a size.
func (r *gridRow) cell(size int) gridCell {
	if c, ok := r.cells[size]; ok {
		return c
	}
	return nameless
}

// head is the line above all rows.
func (g *grid) head(name ...string) []string { return append(name, each(g.sizes, formatSize)...) }

// text writes the grid in columns, figures right below each other.
func (g *grid) text(b *strings.Builder, head ...string) {
	if len(g.rows) == 0 {
		return
	}
	rows := [][]string{g.head(head...)}
	for i := range g.rows {
		r := &g.rows[i]
		upper, lower, second := slices.Clone(r.name), make([]string, len(r.name)), false
		for _, s := range g.sizes {
			c := r.cell(s)
			upper, lower = append(upper, c.figure), append(lower, c.below)
			second = second || c.below != ""
		}
		if rows = append(rows, upper); second {
			rows = append(rows, lower)
		}
	}
	b.WriteString(g.title + "\n")
	writeColumns(b, rows, len(head))
	b.WriteByte('\n')
}

// markdown writes the grid as a table of a document.
func (g *grid) markdown(b *strings.Builder, head ...string) {
	if len(g.rows) == 0 {
		return
	}
	row := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	b.WriteString("**" + g.title + "**\n\n")
	row(g.head(head...))
	b.WriteString("|" + strings.Repeat("---|", len(head)) + strings.Repeat("--:|", len(g.sizes)) + "\n")
	for i := range g.rows {
		r := &g.rows[i]
		cells := slices.Clone(r.name)
		for _, s := range g.sizes {
			c := r.cell(s)
			if c.below != "" {
				c.figure += "<br>" + c.below
			}
			cells = append(cells, c.figure)
		}
		row(cells)
	}
	b.WriteByte('\n')
}

// writeColumns pads every column to its widest cell: the first ones, which are
// names, to the left, the others to the right.
func writeColumns(b *strings.Builder, rows [][]string, names int) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, s := range row {
			width[i] = max(width[i], utf8.RuneCountInString(s))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, s := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(s))
			if i < names {
				line.WriteString(s + pad)
			} else {
				line.WriteString(pad + s)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
