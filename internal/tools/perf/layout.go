package perf

import "github.com/gohixl/hixl"

// layout says where in the region each queue pair's messages lie: first an area
// for each to send from (or to read into), then one for each to receive into, or
// for the peer to write, read and change. Small messages step through their area
// by whole cache lines, so that not one place is hit all the time.
type layout struct {
	qps, area, page, line int
	grh                   int // before each received datagram
}

func newLayout(c *Config, t terms, largest int) layout {
	l := layout{qps: c.QPs, page: t.page, line: t.line}
	if c.Connection == hixl.UD {
		l.grh = hixl.GRHLen
	}
	l.area = roundUp(max(largest+l.grh, t.page), t.page)
	return l
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

func (l *layout) size() int { return 2 * l.qps * l.area }

// local returns where the area starts that a queue pair sends from, and shared
// the one that its peer reaches.
func (l *layout) local(qp int) int  { return qp * l.area }
func (l *layout) shared(qp int) int { return (l.qps + qp) * l.area }

// steps is a walk through an area: message n lies at (n mod count)·stride.
type steps struct{ stride, count int }

func (s steps) at(n uint64) int { return int(n%uint64(s.count)) * s.stride }

// walk returns the steps of messages of a size, as both ends of a write, read or
// atomic take them.
func (l *layout) walk(size int) steps {
	stride := roundUp(size, l.line)
	if size > l.page/2 {
		return steps{stride, 1}
	}
	return steps{stride, l.page / stride}
}

// recvWalk is the same for what receives take, network header included.
func (l *layout) recvWalk(size int) steps { return l.walk(size + l.grh) }
