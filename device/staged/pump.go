package staged

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/gohixl/hixl/device"
)

// run is the pool's goroutine: it feeds the engine, takes back what it has done and
// tells.
func (p *Pool) run() {
	defer close(p.over)
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closing {
		if !p.land() && !p.admit() && !p.launch() {
			p.wake.Wait()
		}
	}
}

// launch gives a buffer to the engine, if there is one and a stream for it. Locked,
// but for the driver's calls.
func (p *Pool) launch() bool {
	c, s := p.in.next()
	if c == nil {
		c, s = p.out.next()
	}
	if c == nil {
		return false
	}
	p.stats.Copies += uint64(len(c.segs))
	p.stats.CopiedBytes += uint64(c.used)
	on := s.stream
	p.mu.Unlock()
	over := func(err error) { p.landed(landing{c, s, on, err}) }
	if q, ok := on.(device.Submitter); ok {
		q.Submit(c.copies(), over)
	} else if err := on.Copy(c.copies()...); err != nil {
		over(err)
	} else if err := on.Do(over); err != nil {
		over(err)
	}
	p.mu.Lock()
	return true
}

// landed is called by the driver.
func (p *Pool) landed(l landing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = append(p.done, l)
	p.wake.Signal()
}

// land deals with one copy that is over. Locked, but for copying and telling.
func (p *Pool) land() bool {
	if len(p.done) == 0 {
		return false
	}
	l := p.done[0]
	p.done = append(p.done[:0], p.done[1:]...)
	p.mu.Unlock()
	if l.err == nil && l.c.lane.dir == device.Out {
		for _, q := range l.c.parts {
			copy(q.data, l.c.buf[q.at:q.at+q.n])
		}
	}
	if l.err != nil {
		l.err = l.line.reason(&l)
		p.renew(l)
	}
	p.mu.Lock()
	l.line.busy--
	if l.err != nil {
		p.stats.Failed++
	}
	var over *op
	parts := l.c.parts
	for _, q := range parts {
		over = p.partOver(q, l.err, over)
	}
	l.c.lane.landed(l.c, l.line.stuck)
	if errors.Is(l.err, device.ErrLost) || len(l.c.lane.lines) == 0 {
		over = p.fail(l.err, over)
	}
	p.tell(over)
	return true
}

// renew replaces a stream on which something failed, unless that was done for what
// was queued with it. When this returns, the engine no longer uses the buffer.
// Unlocked: only the pool's goroutine changes streams.
func (p *Pool) renew(l landing) {
	if l.line.stream != l.stream {
		return
	}
	ended := l.stream.Destroy()
	if ended != nil && !errors.Is(ended, device.ErrLost) && !errors.Is(ended, device.ErrClosed) {
		// The engine may use the buffers yet: they are given to nobody any more.
		p.mu.Lock()
		defer p.mu.Unlock()
		l.line.stuck = true
		p.drop(l)
		return
	}
	s, err := p.drv.NewStream(p.cfg.Priority)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.drop(l)
		return
	}
	l.line.stream = s
	if lines := &l.c.lane.lines; !slices.Contains(*lines, l.line) { // it could not be replaced before
		*lines = append(*lines, l.line)
	}
}

// drop does without a stream from now on. Locked.
func (p *Pool) drop(l landing) {
	lines := &l.c.lane.lines
	if i := slices.Index(*lines, l.line); i >= 0 {
		*lines = slices.Delete(*lines, i, i+1)
	}
}

// partOver ends a part, or begins the second step of an atomic. It adds the
// operation to the list if that is over, too. Locked.
func (p *Pool) partOver(q *part, err error, over *op) *op {
	if q.kind == swaps {
		if err == nil && !q.storing && p.compute(q) {
			p.grant(q)
			return over
		}
		p.deactivate(q)
	}
	o := q.op
	if err != nil && o.err == nil {
		o.err = err
	}
	p.putPart(q)
	if o.left--; o.left == 0 {
		o.next = over
		return o
	}
	return over
}

// compute does an atomic's arithmetic and reports whether there is a word to store.
func (p *Pool) compute(q *part) bool {
	old := binary.NativeEndian.Uint64(q.word[:])
	if q.atomic.Kind != device.Store {
		q.atomic.Result = old
	}
	value, store := q.atomic.Apply(old)
	binary.NativeEndian.PutUint64(q.word[:], value)
	q.storing = true
	return store
}

// grant puts the second step of an atomic on its way, past all that waits. Locked.
func (p *Pool) grant(q *part) {
	if !p.place(q) {
		p.granted = append(p.granted, q)
	}
}

func (p *Pool) deactivate(q *part) {
	for i := range p.active {
		if p.active[i] == q {
			p.active = append(p.active[:i], p.active[i+1:]...)
			return
		}
	}
}

// place puts a part that may start into a buffer. Locked.
func (p *Pool) place(q *part) bool {
	l, from := &p.in, q.data
	switch {
	case q.kind == reads || q.kind == swaps && !q.storing:
		l = &p.out
	case q.kind == swaps:
		from = q.word[:]
	}
	if !l.put(q) {
		return false
	}
	if l == &p.in {
		copy(l.bufferOf(q)[q.at:], from)
	}
	return true
}

// bufferOf is the buffer that just took q: the one being filled.
func (l *lane) bufferOf(*part) []byte { return l.open.buf }

// admit starts what waits, in order, and reports whether anything started. Locked.
func (p *Pool) admit() bool {
	started := 0
	for len(p.granted) > 0 && p.place(p.granted[0]) {
		p.granted = append(p.granted[:0], p.granted[1:]...)
		started++
	}
	n := 0
	for ; n < len(p.waiting) && len(p.granted) == 0; n++ {
		q := p.waiting[n]
		if p.flies(q.op.mem, q.off, q.n, q.changes()) || !p.start(q) {
			break
		}
	}
	if n > 0 {
		rest := copy(p.waiting, p.waiting[n:])
		clear(p.waiting[rest:])
		p.waiting = p.waiting[:rest]
	}
	return started+n > 0
}

// start puts a part on its way if there is a buffer. Locked.
func (p *Pool) start(q *part) bool {
	if !p.place(q) {
		return false
	}
	if q.kind == writes && q.data != nil { // it had waited
		p.spilled -= q.n
		q.data = nil
	}
	if q.kind == swaps {
		p.active = append(p.active, q)
		p.stats.Atomics++
	}
	return true
}

// fail ends everything that is not with the engine: the device is lost, or has no
// stream left. What is with the engine ends by itself. Locked.
func (p *Pool) fail(err error, over *op) *op {
	if p.err == nil {
		p.err = err
	}
	for _, q := range p.waiting {
		if q.kind == writes {
			p.spilled -= q.n
		}
		over = p.partOver(q, p.err, over)
	}
	for _, q := range p.granted {
		over = p.partOver(q, p.err, over)
	}
	clear(p.waiting)
	clear(p.granted)
	p.waiting, p.granted = p.waiting[:0], p.granted[:0]
	for _, l := range []*lane{&p.in, &p.out} {
		list := l.full
		if l.open != nil {
			list = append(list, l.open)
		}
		l.full, l.open = nil, nil
		for _, c := range list {
			for _, q := range c.parts {
				over = p.partOver(q, p.err, over)
			}
			c.reset()
			l.free = append(l.free, c)
		}
	}
	return over
}

// tell reports operations that are over, without the lock. Locked on entry and on
// return.
func (p *Pool) tell(over *op) {
	for o := over; o != nil; o = o.next {
		o.mem.pending--
	}
	p.mu.Unlock()
	for o := over; o != nil; o = o.next {
		o.c.MemoryDone(o.token, o.err)
	}
	p.mu.Lock()
	for over != nil {
		o := over
		over = o.next
		*o = op{}
		if len(p.spareOps) < keep {
			p.spareOps = append(p.spareOps, o)
		}
	}
}
