package chaostest

import "time"

// harm lets something go wrong.
func (w *world) harm() {
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	if n.c == nil {
		return
	}
	switch w.rng.IntN(10) {
	case 0, 1: // it dies, at times while it stands still
		w.tally["kills"]++
		n.down(false)
		w.later(50*time.Millisecond+w.upTo(30*time.Second), n.boot)
	case 2:
		if n.stopped {
			return
		}
		w.tally["closes"]++
		n.down(true)
		w.later(50*time.Millisecond+w.upTo(10*time.Second), n.boot)
	case 3, 4:
		w.stop(n, w.upTo(25*time.Second))
	case 5, 6:
		if n.stopped {
			return
		}
		w.tally["deregistrations"]++
		w.log("node %d deregisters", n.i)
		s := n.data
		if err := s.region.Deregister(over); err != nil {
			w.fail("node %d cannot deregister: %v", n.i, err)
		}
		s.end()
		n.publish()
		n.due = w.now
	case 7:
		w.tally["cuts"]++
		m := w.nodes[w.rng.IntN(len(w.nodes))]
		w.log("cut %d from %d", n.i, m.i)
		w.net.Cut(n.addr.Addr(), m.addr.Addr())
		w.later(w.upTo(40*time.Second), func() { w.net.Heal(n.addr.Addr(), m.addr.Addr()) })
	case 8:
		w.tally["bad links"]++
		link := bad
		if w.rng.IntN(2) == 0 {
			link = slow
		}
		w.net.SetDefaultLink(link)
		w.later(w.upTo(20*time.Second), func() { w.net.SetDefaultLink(good) })
	case 9:
		if n.stopped {
			return
		}
		f := n.flows[w.rng.IntN(len(n.flows))]
		w.tally["peers closed"]++
		w.log("node %d closes peer %d", n.i, f.to.i)
		if p, err := n.c.Peer(f.to.addr); err == nil {
			_ = p.Close()
			for _, f := range n.flows {
				if f.to.addr == p.Address() {
					f.named, f.parted = nil, true
				}
			}
			n.due = w.now
		}
	}
}

// stop makes a node stand still for a time; its clock goes on.
func (w *world) stop(n *node, d time.Duration) {
	if n.stopped {
		return
	}
	w.tally["stops"]++
	w.log("node %d stops for %v", n.i, d)
	n.stopped = true
	life := n.life
	w.later(d, func() {
		if n.life == life && n.c != nil {
			n.stopped, n.due = false, w.now
		}
	})
}
