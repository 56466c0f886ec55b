package bench

import (
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// barWidth is the width of the bar itself, in characters.
const barWidth = 30

// bar is a progress bar on a terminal.
type bar struct {
	out *os.File
	b   *progressbar.ProgressBar
}

// ProgressBar returns a bar on out, or nil when out is no terminal.
func ProgressBar(out *os.File) Progress {
	if !term.IsTerminal(int(out.Fd())) {
		return nil
	}
	return &bar{out: out}
}

// Begin draws the empty bar.
func (p *bar) Begin(steps int) {
	p.b = progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(p.out), progressbar.OptionSetWidth(barWidth),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionUseANSICodes(true))
}

// Step names what begins now. The bar counts it at once, since nothing else
// tells when it is over.
func (p *bar) Step(what string) {
	p.b.Describe(what)
	_ = p.b.Add(1) // a terminal that cannot be written to is no reason to stop
}

// End removes the bar.
func (p *bar) End() { _ = p.b.Clear() }
