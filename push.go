package hixl

import (
	"context"
	"fmt"
	"time"

	"github.com/gohixl/hixl/internal/coalesce"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/nic"
)

// CoalesceConfig says which unsignaled writes are gathered, and until when they
// wait. Whatever else is begun on the peer sends what is gathered first.
type CoalesceConfig struct {
	// Off sends each write at once.
	Off bool
	// MaxWrite is the longest write that is gathered, 1..4096 bytes, default 512.
	MaxWrite int
	// Bytes and Count are how much is gathered, default 16 KiB and 256 writes;
	// Bytes is 4096..65,536.
	Bytes, Count int
	// Delay is how long a write may wait, default 50 µs.
	Delay time.Duration
}

// Defaults of a CoalesceConfig.
const (
	DefaultCoalesceWrite = 512
	DefaultCoalesceBytes = 16 << 10
	DefaultCoalesceCount = 256
	DefaultCoalesceDelay = 50 * time.Microsecond
)

func (c *CoalesceConfig) fill() error {
	for _, f := range [...]struct {
		name          string
		v             *int
		def, low, top int
	}{
		{"MaxWrite", &c.MaxWrite, DefaultCoalesceWrite, 1, 4096},
		{"Bytes", &c.Bytes, DefaultCoalesceBytes, 4096, 64 << 10},
		{"Count", &c.Count, DefaultCoalesceCount, 1, 64 << 10},
	} {
		if *f.v = orDefault(*f.v, f.def); *f.v < f.low || *f.v > f.top {
			return &nic.ConfigError{Field: "CoalesceConfig." + f.name, Value: *f.v, Allowed: fmt.Sprintf("%d to %d", f.low, f.top)}
		}
	}
	if c.Delay == 0 {
		c.Delay = DefaultCoalesceDelay
	}
	if c.Delay < 0 {
		return &nic.ConfigError{Field: "CoalesceConfig.Delay", Value: c.Delay, Allowed: "0 for the default, or more"}
	}
	return nil
}

// stage is where a peer's unsignaled writes are gathered.
type stage struct {
	coalesce.Stage
	slot   uint32
	region *Region
	off    uint64
}

// Push begins an unsignaled write, on the peer's first queue pair, behind all
// Ordered transfers and other Pushes. It has completed when a transfer that was
// begun after it with Ordered has, or with [Peer.Flush], which also tells if it
// failed. A write of at most CoalesceConfig.MaxWrite bytes is gathered with others
// (but with [NoCoalesce]); its bytes have been copied when Push returns. Any
// other's, and it must have a Local region, stay as they are until it has
// completed.
func (p *Peer) Push(d Desc, flags ...TransferFlags) error {
	f := union(flags)
	if f&^(Ordered|FenceBefore|NoCoalesce|Unsignaled) != 0 {
		return p.badTransfer(Write, "unknown flags")
	}
	p.mu.Lock()
	defer p.release()
	return p.push(&d, f)
}

// push is Push. p.mu is held.
func (p *Peer) push(d *Desc, f TransferFlags) error {
	if err := p.checkDesc(Write, d); err != nil {
		return err
	}
	n := d.size()
	c := &p.c.cfg.Coalesce
	if p.cur == nil || p.queue.Len() > 0 {
		if err := p.ready(p.c.nic.nic.Now(), pieces(n)); err != nil {
			return err
		}
	}
	if b := d.bytes(); !c.Off && f&(NoCoalesce|FenceBefore) == 0 && n > 0 && n <= uint64(c.MaxWrite) && b != nil {
		return p.gather(d.Remote, d.RemoteOff, b)
	}
	now := p.c.nic.nic.Now()
	p.spill(now)
	t := Transfer{Op: Write, Flags: f | Ordered | Unsignaled}
	p.cut(now, nil, &t, t.Flags, d, true)
	return nil
}

// bytes is what a piece writes, nil if the CPU cannot read it.
func (d *Desc) bytes() []byte {
	if len(d.Inline) > 0 {
		return d.Inline
	}
	if b := d.Local.Bytes(); b != nil {
		return b[d.LocalOff : d.LocalOff+d.Len]
	}
	return nil
}

// gather stages a write. p.mu is held.
func (p *Peer) gather(r *RemoteRegion, at uint64, b []byte) error {
	s := p.stage
	if s == nil {
		c := &p.c.cfg.Coalesce
		s = new(stage)
		s.Init(coalesce.Config{Bytes: c.Bytes - c.MaxWrite, Count: c.Count, Delay: c.Delay})
		p.stage = s
	}
	if s.Empty() {
		var err error
		if s.slot, s.region, s.off, err = p.c.chunks.take(); err != nil {
			return err
		}
		now := p.c.nic.nic.Now()
		p.used = now
		s.Begin(now, p.c.chunks.bytes(s.slot))
		p.alarmBy(now.Add(p.c.cfg.Coalesce.Delay))
	}
	if s.Add(r, at, b) {
		p.spill(p.c.nic.nic.Now())
	}
	return nil
}

// alarmBy has the peer looked at no later than at. An earlier look that finds
// nothing to do sets the next one, so a busy stage costs one a Delay. p.mu is held.
func (p *Peer) alarmBy(at mono.Time) {
	if p.c.timers.by(p, at) {
		p.c.kick()
	}
}

// spill posts what is gathered. p.mu is held.
func (p *Peer) spill(now mono.Time) {
	s := p.stage
	if s == nil || s.Empty() {
		return
	}
	runs, writes := s.Take()
	p.c.counts.coalesced.Add(uint64(writes))
	p.c.counts.coalescedPosts.Add(uint64(len(runs)))
	for i := range runs {
		r := &runs[i]
		x := piece{
			op: Write, flags: Ordered | Unsignaled, local: s.region, off: s.off + uint64(r.Off), n: uint64(r.Len),
			remote: r.Target.(*RemoteRegion), roff: r.At,
		}
		if i == len(runs)-1 {
			x.kind, x.slot = pieceChunk, s.slot
		}
		p.put(now, &x)
	}
}

// spillDue posts what has been gathered for long enough. p.mu is held.
func (p *Peer) spillDue(now mono.Time) {
	if s := p.stage; s != nil && !s.Empty() && !now.Before(s.Deadline()) {
		p.spill(now)
	}
}

// Flush sends what is gathered and returns when everything that was begun before
// it on this peer, on all queue pairs, has completed: what was written is visible
// at the peer, what was read is here. Its error is the first of an unsignaled write
// that failed since the last Flush, a *[TransferError], or the connection's. To give
// a Flush up, by its context or by Cancel, is not to give up what it waits for, which
// goes on.
func (p *Peer) Flush(ctx context.Context) error {
	if p.c.nic.stepped {
		return p.refuse(Flush, ErrStepped)
	}
	h, err := p.FlushAsync()
	if err != nil {
		return err
	}
	if !h.await(ctx) {
		return p.overdue(ctx, h)
	}
	return h.err
}

// FlushAsync begins a Flush.
func (p *Peer) FlushAsync() (*Handle, error) {
	h := &Handle{p: p, op: Flush, parts: 1}
	p.mu.Lock()
	defer p.release()
	now := p.c.nic.nic.Now()
	p.spill(now)
	if p.cur == nil && p.queue.Len() == 0 { // everything has ended
		p.flushed(h, nil)
		return h, nil
	}
	x := piece{h: h, kind: pieceGate, op: Flush}
	p.put(now, &x)
	return h, nil
}

// flushed ends a Flush. p.mu is held.
func (p *Peer) flushed(h *Handle, err error) {
	if p.lost != nil {
		err, p.lost = p.lost, nil
	}
	p.part(h, err, 0)
}

// Fence makes whatever is begun after it on this peer, on any queue pair, wait
// until everything begun before it has completed. It does not block. The error is
// as for Start.
func (p *Peer) Fence() error {
	p.mu.Lock()
	defer p.release()
	now := p.c.nic.nic.Now()
	p.spill(now)
	if p.cur == nil && p.queue.Len() == 0 {
		return nil
	}
	if err := p.ready(now, 1); err != nil {
		return err
	}
	x := piece{kind: pieceFence, op: Flush}
	p.put(now, &x)
	return nil
}
