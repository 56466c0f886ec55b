package xdp

import (
	"sync/atomic"
	"time"
)

// gaps remembers how long packets have been waited for, to tell whether to look for
// them or to sleep: who sleeps while they come thick is woken for each few of them,
// and who looks while they come rarely keeps a processor busy for nothing.
type gaps struct {
	most time.Duration // of a look, 0 for never
	mean atomic.Int64  // of the last waits, nanoseconds
}

const (
	// gapShare is how many times longer than the mean a look may last: as long as
	// most waits end within a fraction of it, few looks are in vain.
	gapShare = 4
	// gapWeight is the number of waits of which the mean is made.
	gapWeight = 16
)

// start makes the first waits sleep.
func (g *gaps) start(most time.Duration) {
	g.most = max(most, 0)
	g.mean.Store(int64(g.most))
}

// short reports whether to look.
func (g *gaps) short() bool {
	return g.most > 0 && g.mean.Load()*gapShare <= int64(g.most)
}

// add notes a wait. One that was long counts as the longest look: a pause within a
// stream of packets changes little, and some four in a row end the looking. Of waits
// that are noted at the same time one may be lost.
func (g *gaps) add(d time.Duration) {
	mean := g.mean.Load()
	if next := mean + (int64(min(d, g.most))-mean)/gapWeight; next != mean {
		g.mean.Store(next)
	}
}
