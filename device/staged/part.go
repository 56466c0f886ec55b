package staged

import (
	"errors"

	"github.com/gohixl/hixl/device"
)

// op is one operation of a memory's user.
type op struct {
	mem   *Memory
	token uint64
	c     device.Completer
	left  int   // parts not over, guarded by the pool's mu
	err   error // the first; guarded by the pool's mu
	next  *op   // in a list of those to be reported
}

// kind of a part.
type kind uint8

const (
	writes kind = iota
	reads
	swaps // an atomic
)

// part is a range of an operation that fits a buffer. It is the unit in which order
// is kept: a part starts when nothing that it conflicts with is before it.
type part struct {
	op   *op
	kind kind
	off  uint64
	n    int
	// data is where the bytes come from, for a write that waits, or go to, for a
	// read.
	data []byte
	at   int // in the buffer

	// Of an atomic: while it is active nothing else touches its word.
	atomic  *device.AtomicOp
	storing bool // the word has been read
	word    [device.WordSize]byte
}

// changes reports whether the part writes.
func (p *part) changes() bool { return p.kind != reads }

// touches reports whether the part's order with a range of m matters.
func (p *part) touches(m *Memory, off uint64, n int, changes bool) bool {
	return p.op.mem == m && (changes || p.changes()) && off < p.off+uint64(p.n) && p.off < off+uint64(n)
}

// segment is a range of a buffer that is one range of a memory.
type segment struct {
	mem *Memory
	off uint64
	at  int
	n   int
}

// chunk is a staging buffer and what is in it.
type chunk struct {
	lane  *lane
	buf   []byte // pinned
	used  int
	segs  []segment
	parts []*part
	list  []device.Copy
}

// maxSegments bounds the copies of one buffer.
const maxSegments = 128

// touches reports whether a range of m is in the buffer.
func (c *chunk) touches(m *Memory, off uint64, n int) bool {
	for i := range c.segs {
		s := &c.segs[i]
		if s.mem == m && off < s.off+uint64(s.n) && s.off < off+uint64(n) {
			return true
		}
	}
	return false
}

// take puts a part into the buffer, if it fits.
func (c *chunk) take(p *part) bool {
	if p.n > len(c.buf)-c.used {
		return false
	}
	last := len(c.segs) - 1
	if joins := last >= 0 && c.segs[last].mem == p.op.mem && c.segs[last].off+uint64(c.segs[last].n) == p.off; joins {
		c.segs[last].n += p.n
	} else if len(c.segs) == maxSegments {
		return false
	} else {
		c.segs = append(c.segs, segment{mem: p.op.mem, off: p.off, at: c.used, n: p.n})
	}
	p.at = c.used
	c.used += p.n
	c.parts = append(c.parts, p)
	return true
}

// copies lists what the engine has to do.
func (c *chunk) copies() []device.Copy {
	c.list = c.list[:0]
	for i := range c.segs {
		s := &c.segs[i]
		c.list = append(c.list, device.Copy{
			Dir: c.lane.dir, Dev: s.mem.block.Addr + device.Addr(s.off), Host: c.buf[s.at : s.at+s.n],
		})
	}
	return c.list
}

// reset empties the buffer.
func (c *chunk) reset() {
	clear(c.parts)
	clear(c.segs)
	c.used, c.segs, c.parts = 0, c.segs[:0], c.parts[:0]
}

// lane is one direction: its buffers and its streams.
type lane struct {
	dir    device.Direction
	free   []*chunk
	open   *chunk   // being filled
	full   []*chunk // in the order in which they are to go
	flying []*chunk // given to the engine
	stuck  []*chunk // given to a stream that could not be ended
	lines  []*line
}

// line is a stream and how many buffers are under way on it.
type line struct {
	stream device.Stream
	busy   int
	stuck  bool // it could not be ended

	failed device.Stream // the one on which something failed last
	why    error         // what failed there first
}

// reason is why a copy failed. A stream on which something failed is ended, of which
// whoever else was under way on it is told: the failure is their reason too.
func (n *line) reason(l *landing) error {
	if n.failed != l.stream {
		n.failed, n.why = l.stream, l.err
	}
	if errors.Is(l.err, device.ErrClosed) {
		return n.why
	}
	return l.err
}

// depth is how many: one that is copied, and one that the engine finds when it is
// done with that.
const depth = 2

// put adds a part to the buffer that is being filled, or reports that there is no
// room in any.
func (l *lane) put(p *part) bool {
	for {
		if l.open == nil {
			n := len(l.free)
			if n == 0 {
				return false
			}
			l.open, l.free = l.free[n-1], l.free[:n-1]
		}
		if l.open.take(p) {
			return true
		}
		l.full, l.open = append(l.full, l.open), nil
	}
}

// next is a buffer for the engine and the stream it goes to, or nil.
func (l *lane) next() (*chunk, *line) {
	var s *line
	for _, k := range l.lines {
		if k.busy < depth && (s == nil || k.busy < s.busy) {
			s = k
		}
	}
	if s == nil {
		return nil, nil
	}
	var c *chunk
	switch {
	case len(l.full) > 0:
		c = l.full[0]
		l.full = append(l.full[:0], l.full[1:]...)
	case l.open != nil:
		c, l.open = l.open, nil
	default:
		return nil, nil
	}
	s.busy++
	l.flying = append(l.flying, c)
	return c, s
}

// landed takes a buffer back, to be used again unless the engine may do so as well.
func (l *lane) landed(c *chunk, stuck bool) {
	for i := range l.flying {
		if l.flying[i] == c {
			l.flying = append(l.flying[:i], l.flying[i+1:]...)
			break
		}
	}
	c.reset()
	if stuck {
		l.stuck = append(l.stuck, c)
		return
	}
	l.free = append(l.free, c)
}

// touches reports whether a range of m is in any of the lane's buffers.
func (l *lane) touches(m *Memory, off uint64, n int) bool {
	if l.open != nil && l.open.touches(m, off, n) {
		return true
	}
	for _, c := range l.full {
		if c.touches(m, off, n) {
			return true
		}
	}
	for _, c := range l.flying {
		if c.touches(m, off, n) {
			return true
		}
	}
	return false
}
