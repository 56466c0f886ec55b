package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
)

// engine moves the messages of one size. It belongs to the goroutine that runs
// the test.
type engine struct {
	cfg    *Config
	d      *device
	theirs []dest
	size   int
	mod    int // messages between completions
	walk   steps
	recv   steps
	flows  []flow
	wcs    []hixl.Completion

	sends, receives bool // what this end does
	time            clock
	sent, received  uint64 // on all queue pairs
	atomics         []atomicCheck
}

// flow is one queue pair's part.
type flow struct {
	qp                   *hixl.QP
	index                int
	posted, done         uint64 // messages of ours
	recvPosted, received uint64
	wrs                  []hixl.SendWR
	fresh                int // receives completed since the last were posted
}

// batch bounds the work requests of one post.
const batch = 64

func newEngine(c *Config, d *device, theirs []dest, size int) *engine {
	e := &engine{
		cfg: c, d: d, theirs: theirs, size: size, mod: c.cqMod(), walk: d.lay.walk(size), recv: d.lay.recvWalk(size),
		flows: make([]flow, c.QPs), wcs: make([]hixl.Completion, wcBatch),
	}
	for i := range e.flows {
		wrs := make([]hixl.SendWR, min(c.TxDepth, batch))
		for k := range wrs {
			wrs[k] = e.sendWR(i)
		}
		e.flows[i] = flow{qp: d.qps[i], index: i, wrs: wrs}
	}
	if c.Test.Kind == Latency {
		e.walk.count, e.recv.count = 1, 1
	}
	if c.Test.Verb == Atomic {
		e.atomics = newAtomicChecks(e)
	}
	e.roles()
	return e
}

// roles says what this end does and what of it is measured: as in perftest, of a
// test of SENDs that takes a time what arrives counts too.
func (e *engine) roles() {
	c := e.cfg
	send := c.Test.Verb == Send
	e.sends = c.Client() || c.Bidirectional || c.Test.Kind == Latency
	e.receives = send && (!c.Client() || c.Bidirectional || c.Test.Kind == Latency)
	e.time.duration = c.Duration
	e.time.countReceived = e.receives && (!e.sends || c.Duration > 0)
	e.time.countSent = e.sends && (!send || c.Test.Kind == Bandwidth || c.Duration == 0)
	if c.Test.Kind == Bandwidth && !c.NoPeak && e.sends {
		e.time.peak = &peak{mod: e.mod}
	}
}

// sendWR is the part of a work request that all messages of a queue pair share.
func (e *engine) sendWR(qp int) hixl.SendWR {
	wr := hixl.SendWR{SGE: []hixl.SGE{e.d.mr.SGE(0, uint32(e.size))}, RKey: e.theirs[qp].rkey}
	switch e.cfg.Test.Verb {
	case Write:
		wr.Op = hixl.OpWrite
	case Read:
		wr.Op = hixl.OpRead
	case Send:
		wr.Op, wr.RKey = hixl.OpSend, 0
		if e.d.to != nil {
			wr.To = e.d.to[qp]
		}
	case Atomic:
		wr.Op, wr.SwapAdd = hixl.OpFetchAdd, 1
		if e.cfg.Atomic == CmpSwap {
			wr.Op, wr.SwapAdd, wr.Compare = hixl.OpCmpSwap, 0, 0
		}
	}
	return wr
}

// message fills in what is different in message k of a queue pair.
func (e *engine) message(f *flow, wr *hixl.SendWR, k uint64) {
	at := uint64(e.walk.at(k))
	from := at
	if e.cfg.Test.Verb == Atomic {
		from = k % uint64(e.cfg.TxDepth) * atomicSize // results are looked at before their place is used again
	}
	wr.ID = sendID(f.index, k)
	wr.SGE[0].Addr = e.d.mr.Addr() + uint64(e.d.lay.local(f.index)) + from
	if e.cfg.Test.Verb != Send {
		wr.RemoteAddr = e.theirs[f.index].addr + at
	}
	wr.Flags = 0
	if (k+1)%uint64(e.mod) == 0 || e.cfg.Duration == 0 && k+1 == uint64(e.cfg.Iters) {
		wr.Flags = hixl.Signaled
	}
	if e.size <= e.cfg.Inline {
		wr.Flags |= hixl.Inline
	}
}

// Work request numbers: the queue pair above, the message below.
func sendID(qp int, k uint64) uint64 { return uint64(qp)<<40 | k }

func splitID(id uint64) (qp int, k uint64) { return int(id >> 40), id & (1<<40 - 1) }

// room returns how many messages a flow may post now.
func (e *engine) room(f *flow) uint64 {
	free := uint64(e.cfg.TxDepth) - (f.posted - f.done)
	if e.cfg.Duration > 0 {
		return free / uint64(e.mod) * uint64(e.mod) // so that the last one is signaled
	}
	return min(free, uint64(e.cfg.Iters)-f.posted)
}

// post sends what a flow may.
func (e *engine) post(f *flow) error {
	for n := e.room(f); n > 0; {
		wrs := f.wrs[:min(n, uint64(len(f.wrs)))]
		for i := range wrs {
			e.message(f, &wrs[i], f.posted+uint64(i))
		}
		e.time.posted(len(wrs))
		if err := f.qp.PostSend(wrs...); err != nil {
			return err
		}
		f.posted += uint64(len(wrs))
		n -= uint64(len(wrs))
	}
	return nil
}

// postReceives posts what a flow's receive queue has room for and the run needs.
func (e *engine) postReceives(f *flow) error {
	room := uint64(e.cfg.RxDepth) - (f.recvPosted - f.received)
	if e.cfg.Duration == 0 {
		room = min(room, uint64(e.cfg.Iters)-f.recvPosted)
	}
	wrs := make([]hixl.RecvWR, 0, min(room, batch))
	length := uint32(e.size + e.d.lay.grh)
	for room > 0 {
		wrs = wrs[:0]
		for ; room > 0 && len(wrs) < batch; room-- {
			at := e.d.lay.shared(f.index) + e.recv.at(f.recvPosted)
			wrs = append(wrs, hixl.RecvWR{ID: uint64(f.index), SGE: []hixl.SGE{e.d.mr.SGE(uint64(at), length)}})
			f.recvPosted++
		}
		if err := f.qp.PostRecv(wrs...); err != nil {
			return err
		}
	}
	return nil
}

// take waits for completions and accounts for them.
func (e *engine) take(ctx context.Context) error {
	if ctx.Err() != nil { // there may be something to take at any time
		return context.Cause(ctx)
	}
	n, err := e.d.cq.Wait(ctx, e.wcs)
	if err != nil {
		return tools.Cause(ctx, err)
	}
	return e.account(e.wcs[:n])
}

func (e *engine) account(wcs []hixl.Completion) error {
	now := time.Now()
	for i := range wcs {
		wc := &wcs[i]
		if err := wc.Err(); err != nil {
			return err
		}
		var err error
		if wc.Opcode.IsRecv() {
			err = e.arrived(wc, now)
		} else {
			err = e.completed(wc, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errOrder should never be seen: completions of a queue pair come in order.
var errOrder = errors.New("a completion out of order")

func (e *engine) completed(wc *hixl.Completion, now time.Time) error {
	qp, k := splitID(wc.WRID)
	f := &e.flows[qp]
	if k < f.done || k >= f.posted {
		return fmt.Errorf("message %d of queue pair %d: %w", k, qp+1, errOrder)
	}
	if e.cfg.Test.Verb == Read && int(wc.ByteLen) != e.size {
		return &tools.DataError{Where: fmt.Sprintf("READ %d of queue pair %d", k+1, qp+1), Problem: fmt.Sprintf("%d bytes, not %d", wc.ByteLen, e.size)}
	}
	if e.atomics != nil {
		if err := e.atomics[qp].look(f.done, k+1); err != nil {
			return err
		}
	}
	n := k + 1 - f.done
	f.done = k + 1
	e.sent += n
	e.time.completed(n, now)
	return nil
}

func (e *engine) arrived(wc *hixl.Completion, now time.Time) error {
	f := &e.flows[wc.WRID]
	f.received++
	f.fresh++
	e.received++
	if got := int(wc.ByteLen) - e.d.lay.grh; got != e.size {
		return &tools.DataError{
			Where:   fmt.Sprintf("message %d of queue pair %d", f.received, f.index+1),
			Problem: fmt.Sprintf("%d bytes long, not %d: give both ends the same -s", got, e.size),
		}
	}
	e.time.arrived(now)
	return nil
}

// repost posts receives in the place of those that completed.
func (e *engine) repost() error {
	for i := range e.flows {
		if f := &e.flows[i]; f.fresh > 0 {
			f.fresh = 0
			if err := e.postReceives(f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *engine) postAllReceives() error {
	for i := range e.flows {
		if err := e.postReceives(&e.flows[i]); err != nil {
			return err
		}
	}
	return nil
}
