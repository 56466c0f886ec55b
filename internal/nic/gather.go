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
	// gatherLeast is what must have come meanwhile for a nap to have paid. In an
	// exchange of messages of some ten kilobytes, each of which waits for the other
	// side, it has not, and would only delay them.
	gatherLeast = 128 << 10
	// gatherSkip is for how many batches of data none is tried at most after those
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
	tried  bool         // the last nap, without knowing
	skip   int          // batches of data until the next
	vain   int          // what skip was after the last, which did not pay, or 0
}

// took is told of each look, and how many bytes it found.
func (g *gather) took(bytes uint64) {
	if g.until.Load() == 0 {
		return
	}
	g.until.Store(0)
	if !g.tried {
		return
	}
	g.vain = min(max(2*g.vain, 1), gatherSkip)
	if bytes >= gatherLeast {
		g.vain = 0
	}
	g.skip = g.vain
}

// naps reports whether a nap follows the batch just handled, which then is on.
func (r *receiver) naps() bool {
	g := &r.gather
	if !g.on || !r.gathers() {
		return false
	}
	g.tried = g.coming < gatherSure
	if g.tried && g.skip > 0 {
		g.skip--
		return false
	}
	g.until.Store(int64(r.nic.clock().Add(gatherFor)))
	return true
}

// napping reports whether a nap is on.
func (r *receiver) napping() bool {
	until := r.gather.until.Load()
	return until != 0 && int64(r.nic.clock()) < until
}
