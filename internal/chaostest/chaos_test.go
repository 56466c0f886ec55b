package chaostest

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/gohixl/hixl"
)

const (
	nodes  = 20
	length = 10 * time.Minute // of virtual time
)

// trace prints the course of a run.
var trace = os.Getenv("HIXL_CHAOS_TRACE") != ""

func setting(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return def
}

// run lets a world go on for a time, then mends it, waits until all is over, and looks.
func run(seed uint64, d time.Duration) *world {
	w := newWorld(seed, nodes)
	for end := w.now.Add(d); w.now < end && len(w.errs) == 0; {
		w.step(end)
	}
	w.quiet = true
	w.net.HealAll()
	w.net.SetDefaultLink(good)
	for _, n := range w.nodes {
		if n.stopped {
			n.stopped, n.due = false, w.now
		}
		for _, f := range n.flows { // whoever was lost is looked for
			if f.now != nil && n.c != nil {
				n.due = w.now
			}
		}
	}
	busy := func() (o *hop) {
		for _, n := range w.nodes {
			for _, f := range n.flows {
				if f.now != nil && !(f.now.over && f.parted) {
					return f.now
				}
			}
		}
		return nil
	}
	for end := w.now.Add(5 * time.Minute); len(w.errs) == 0; {
		if o := busy(); o == nil && len(w.heal) == 0 {
			break
		} else if w.now >= end {
			w.fail("%s %d of node %d at %d is not over: done %v, fenced %v, peer %v", o.what, o.id, o.f.n.i, o.f.to.i, o.over, o.h.Fenced(), o.h.Peer().State())
			break
		}
		w.step(end)
	}
	w.verify()
	return w
}

// verify looks at everything when nobody is at work.
func (w *world) verify() {
	if len(w.errs) > 0 {
		return
	}
	for _, s := range w.all {
		w.errs = append(w.errs, s.check()...)
	}
	for id, o := range w.expect {
		if w.told[id] == 0 && o.f.to.life == o.life && !o.f.parted {
			w.fail("%s %d of node %d was acknowledged, and node %d was not told", o.what, id, o.f.n.i, o.f.to.i)
		}
	}
	for _, n := range w.nodes { // idle connections are all that there may be
		s, q := n.c.Stats(), n.c.NIC().Stats().QPs
		if most := s.Peers*(hixl.DefaultPeerQPs+2) + 1; q > most {
			w.fail("node %d has %d queue pairs for %d peers", n.i, q, s.Peers)
		}
	}
	for _, n := range w.nodes {
		n.down(true)
	}
	for _, s := range w.all {
		w.errs = append(w.errs, s.check()...)
	}
}

// Twenty nodes for ten minutes in which everything goes wrong.
func TestChaos(t *testing.T) {
	first, seeds := setting("HIXL_CHAOS_FIRST", 0), setting("HIXL_CHAOS_SEEDS", 200)
	if raceOn && os.Getenv("HIXL_CHAOS_SEEDS") == "" {
		seeds = 4
	}
	for i := first; i < first+seeds; i++ {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			w := run(uint64(i), length)
			if testing.Verbose() {
				t.Logf("%v: %d operations, %d packets, %v", time.Since(began), w.ops, w.net.Counters().Sent, w.tally)
			}
			for _, err := range w.errs[:min(len(w.errs), 10)] {
				t.Error(err)
			}
			if len(w.errs) > 0 {
				t.Errorf("replay: HIXL_CHAOS_FIRST=%d HIXL_CHAOS_SEEDS=1 HIXL_CHAOS_TRACE=1 go test ./internal/chaostest -run TestChaos", i)
			}
		})
	}
}

// The same seed gives the same course of events.
func TestChaosReplays(t *testing.T) {
	a, b := run(1, time.Minute), run(1, time.Minute)
	if a.course != b.course || a.ops != b.ops {
		t.Errorf("two runs of one seed differ: %d and %d operations", a.ops, b.ops)
	}
}
