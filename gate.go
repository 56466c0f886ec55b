package hixl

import (
	"github.com/gohixl/hixl/internal/mono"
)

// gate is work that waits, without holding up what is begun after it, until what
// was posted before it has ended: a Flush, or a notification that speaks of work
// on several queue pairs.
type gate struct {
	x     piece
	lanes []passage
}

// passage is one lane up to one of its work requests.
type passage struct {
	l   *lane
	seq uint64
}

// open reports whether everything before the gate has ended.
func (g *gate) open() bool {
	for _, w := range g.lanes {
		if w.l.oldest() <= w.seq {
			return false
		}
	}
	return true
}

// close puts work behind a gate. The lanes' ends are made to be told. p.mu is held.
func (p *Peer) close(now mono.Time, x *piece) {
	g := gate{x: *x}
	first := p.cur.lanes[0]
	for _, l := range p.cur.lanes {
		if l == nil || l.idle() || x.op != Flush && l == first {
			continue // a message is behind what its own lane has anyway
		}
		p.seal(now, l)
		g.lanes = append(g.lanes, passage{l, l.seq})
	}
	p.gates = append(p.gates, g)
	if x.h == nil || x.op != Flush {
		p.pushers.Add(1)
	}
	p.passGates(now)
}

// seal has the end of a lane's last work request told: if it is unsignaled, by a
// signaled write of nothing behind it. p.mu is held.
func (p *Peer) seal(now mono.Time, l *lane) {
	if l.silent > 0 {
		x := piece{kind: pieceProbe, op: Write}
		p.post(now, l, &x)
	}
}

// passGates lets through what is behind open gates, in order. p.mu is held.
func (p *Peer) passGates(now mono.Time) {
	for len(p.gates) > 0 && p.gates[0].open() {
		x := p.gates[0].x
		if x.op != Flush {
			x.kind, x.flags = pieceMessage, x.flags|Ordered
			l := p.choose(now, &x)
			if l == nil {
				return
			}
			p.post(now, l, &x)
			for i := range p.gates[1:] { // a Flush waits for this too
				p.gates[i+1].lanes = append(p.gates[i+1].lanes, passage{l, l.seq})
			}
		}
		p.popGate()
		if x.op == Flush {
			p.flushed(x.h, nil)
		}
	}
}

func (p *Peer) popGate() {
	if x := &p.gates[0].x; x.h == nil || x.op != Flush {
		p.pushers.Add(-1)
	}
	p.gates[0] = gate{}
	if p.gates = p.gates[1:]; len(p.gates) == 0 {
		p.gates = nil
	}
}

// failGates fails what is behind gates. p.mu is held.
func (p *Peer) failGates(err error) {
	for len(p.gates) > 0 {
		x := p.gates[0].x
		p.popGate()
		if x.op == Flush {
			p.flushed(x.h, err)
		} else {
			p.fail(&x, err)
		}
	}
}

// quiet reports whether nothing is posted, and has the ends told if there is. p.mu
// is held.
func (p *Peer) quiet(now mono.Time) bool {
	idle := len(p.gates) == 0
	for _, l := range p.cur.lanes {
		if l != nil && !l.idle() {
			p.seal(now, l)
			idle = false
		}
	}
	return idle
}
