package staged

import (
	"errors"
	"fmt"
	"sync"

	"github.com/gohixl/hixl/device"
)

// Pool moves bytes for all memories of one driver.
type Pool struct {
	// Set once.
	drv  device.Driver
	caps device.Caps
	cfg  Config
	over chan struct{} // closed when the goroutine has ended

	mu       sync.Mutex
	wake     sync.Cond
	in, out  lane    // guarded by mu, as all below
	waiting  []*part // in order: for what they conflict with, or for a buffer
	granted  []*part // second steps of atomics that wait for a buffer
	active   []*part // atomics between their steps
	done     []landing
	spilled  int   // bytes on the Go heap
	err      error // why nothing works any more
	closing  bool
	memories int
	stats    Stats
	spare    []*part
	spareOps []*op
}

// landing is the end of a copy.
type landing struct {
	c      *chunk
	line   *line
	stream device.Stream // of the line at the time
	err    error
}

// Stats counts what a pool did.
type Stats struct {
	// Copies and CopiedBytes went to the engine, in either direction.
	Copies, CopiedBytes uint64
	// MappedWrites, MappedReads and MappedAtomics went through a mapping.
	MappedWrites, MappedReads, MappedAtomics uint64
	// Atomics were done by copies.
	Atomics uint64
	// Waited is how many ranges had to wait for what they overlap, or for a buffer.
	Waited uint64
	// Failed is how many copies failed.
	Failed uint64
	// Staging is the pinned memory in bytes.
	Staging int
	// Spilled is what is on the Go heap now, SpilledMax the most there was.
	Spilled, SpilledMax int
}

// New makes a pool. The driver stays the caller's, who closes it after the pool.
// Errors: device.ErrArgument for the configuration, or the driver's.
func New(drv device.Driver, cfg Config) (*Pool, error) {
	caps := drv.Caps()
	cfg = cfg.fill(caps)
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if r, ok := drv.(device.Retainer); ok {
		if err := r.Retain(); err != nil {
			return nil, err
		}
	}
	p := &Pool{drv: drv, caps: caps, cfg: cfg, over: make(chan struct{})}
	p.wake.L = &p.mu
	p.in.dir, p.out.dir = device.In, device.Out
	for _, l := range []*lane{&p.in, &p.out} {
		if err := p.equip(l); err != nil {
			return nil, errors.Join(err, p.giveBack())
		}
	}
	go p.run()
	return p, nil
}

// equip allocates a lane's buffers and streams.
func (p *Pool) equip(l *lane) error {
	for range p.cfg.Buffers {
		b, err := p.drv.AllocHost(p.cfg.Chunk)
		if err != nil {
			return err
		}
		l.free = append(l.free, &chunk{lane: l, buf: b})
		p.stats.Staging += len(b)
	}
	for range p.cfg.Streams {
		s, err := p.drv.NewStream(p.cfg.Priority)
		if err != nil {
			return err
		}
		l.lines = append(l.lines, &line{stream: s})
	}
	return nil
}

// giveBack frees what equip allocated, and lets go of the driver. The lanes are at rest.
func (p *Pool) giveBack() error {
	if r, ok := p.drv.(device.Retainer); ok {
		defer r.Release()
	}
	var errs []error
	for _, l := range []*lane{&p.in, &p.out} {
		for _, s := range l.lines {
			errs = append(errs, s.stream.Destroy())
		}
		for _, c := range append(l.free, l.stuck...) {
			errs = append(errs, p.drv.FreeHost(c.buf))
		}
		l.lines, l.free, l.stuck = nil, nil, nil
	}
	return errors.Join(errs...)
}

// Driver is what the pool was made of.
func (p *Pool) Driver() device.Driver { return p.drv }

// Stats returns the counters.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Spilled = p.spilled
	return s
}

// Close ends the goroutine and frees staging. It fails with an error that unwraps to
// device.ErrBusy while memories are open. Closing twice is fine.
func (p *Pool) Close() error {
	p.mu.Lock()
	if n := p.memories; n > 0 {
		p.mu.Unlock()
		return fmt.Errorf("staged: %d memories are open, close them first: %w", n, device.ErrBusy)
	}
	closed := p.closing
	p.closing = true
	p.wake.Broadcast()
	p.mu.Unlock()
	<-p.over
	if closed {
		return nil
	}
	err := p.giveBack()
	if errors.Is(err, device.ErrLost) || errors.Is(err, device.ErrClosed) {
		return nil // it went with the device
	}
	return err
}

// conflicts reports whether a range must wait for what was issued before. Locked.
func (p *Pool) conflicts(m *Memory, off uint64, n int, changes bool) bool {
	return p.flies(m, off, n, changes) || touched(p.waiting, m, off, n, changes)
}

// flies is conflicts without what waits itself.
func (p *Pool) flies(m *Memory, off uint64, n int, changes bool) bool {
	return p.in.touches(m, off, n) || (changes && p.out.touches(m, off, n)) || touched(p.active, m, off, n, changes)
}

func touched(list []*part, m *Memory, off uint64, n int, changes bool) bool {
	for _, q := range list {
		if q.touches(m, off, n, changes) {
			return true
		}
	}
	return false
}

// getPart and putPart keep parts for reuse. Locked.
func (p *Pool) getPart() *part {
	if n := len(p.spare); n > 0 {
		q := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return q
	}
	return new(part)
}

// keep bounds what is kept for reuse.
const keep = 4096

func (p *Pool) putPart(q *part) {
	*q = part{}
	if len(p.spare) < keep {
		p.spare = append(p.spare, q)
	}
}

func (p *Pool) getOp(m *Memory, token uint64, c device.Completer) *op {
	m.pending++
	if n := len(p.spareOps); n > 0 {
		o := p.spareOps[n-1]
		p.spareOps = p.spareOps[:n-1]
		*o = op{mem: m, token: token, c: c}
		return o
	}
	return &op{mem: m, token: token, c: c}
}
