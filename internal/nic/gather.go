package nic

import (
	"sync/atomic"
	"time"
)

// While much data comes, what comes next is not looked for at once but after a nap. A
// receiver that takes each train as it comes is done before the next, so it sleeps and
// is woken for each, at the sender's expense: the wake-up is a part of its system call.
// And the kernel then sends with the few pages that the receiver has just read, which
// are slow to write while they are in another processor's cache.
const (
	// gatherFor is the nap. Linux adds the slack of its timers, 50 µs, so that it is
	// some 80.
	gatherFor = 20 * time.Microsecond
	// gatherSure is for how many bytes that are still to come of one message a nap pays:
	// they take longer.
	gatherSure = 384 << 10
	// Whether what follows a message comes at once is not known, so it is tried.
	// gatherLeast is what must have come meanwhile for such a nap to have paid. In an
	// exchange of messages of some ten kilobytes, each of which waits for the other
	// side, it has not, and would only delay them.
	gatherLeast = 128 << 10
	// gatherSkip is for how many batches of data there is no nap at most after those
	// that did not pay.
	gatherSkip = 1024
	// gatherHolds is the least receive buffer in which what comes during a nap is safe.
	gatherHolds = 4 << 20
)

// gather is when to nap. The receiver's lock guards it.
type gather struct {
	on     bool         // a NIC that naps
	coming uint64       // of the queue pair that the last packet was for
	until  atomic.Int64 // nobody looks before; zero: no nap. Read without the lock
	tried  bool         // the last nap, behind a message
	check  bool         // the last nap: the next look is at once
	ends   doubt        // of naps behind messages
	all    doubt        // of all naps
}

// doubt is about naps of one kind: those in vain become rarer and rarer.
type doubt struct {
	skip int // batches of data before the next
	vain int // what skip was after the last, which did not pay, or 0
}

// paid learns whether one paid.
func (d *doubt) paid(ok bool) {
	d.vain = min(max(2*d.vain, 1), gatherSkip)
	if ok {
		d.vain = 0
	}
	d.skip = d.vain
}

// holds reports whether there is to be none yet, and counts.
func (d *doubt) holds() bool {
	if d.skip == 0 {
		return false
	}
	d.skip--
	return true
}

// took is told of each look, and how many bytes it found. The first one after a nap has
// what came meanwhile. The second one, before our answers can have had an effect, tells
// whether the peer has gone on: one that may have little unanswered has not, and loses
// by each nap.
func (g *gather) took(bytes uint64) {
	switch {
	case g.until.Load() != 0:
		g.until.Store(0)
		g.check = true
		if g.tried {
			g.ends.paid(bytes >= gatherLeast)
		}
	case g.check:
		g.check = false
		g.all.paid(bytes > bulk)
	}
}

// naps reports whether a nap follows the batch just handled, which then is on.
func (r *receiver) naps() bool {
	g := &r.gather
	if !g.on || !r.gathers() || g.check || g.all.holds() {
		return false
	}
	g.tried = g.coming < gatherSure
	if g.tried && g.ends.holds() {
		return false
	}
	// The batch may have taken longer than the nap will: its own time is of no use.
	g.until.Store(int64(r.nic.clock().Add(gatherFor)))
	return true
}

// napping reports whether a nap is on.
func (r *receiver) napping() bool {
	until := r.gather.until.Load()
	return until != 0 && int64(r.nic.clock()) < until
}
