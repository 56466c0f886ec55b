package perf

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gohixl/hixl/internal/tools"
)

// rounds are the moments at which a latency test posted its messages: the
// distance of two is a round trip.
type rounds []time.Duration

// sendOne posts the next message of the one queue pair, at the start of its area,
// and notes when.
func (e *engine) sendOne(at *rounds) error {
	f := &e.flows[0]
	wr := &f.wrs[0]
	e.message(f, wr, f.posted)
	if e.cfg.Duration == 0 {
		*at = append(*at, time.Since(e.time.start))
	}
	f.posted++
	return f.qp.PostSend(*wr)
}

// until takes completions until f says that it has what it needs.
func (e *engine) until(ctx context.Context, f func() bool) error {
	for !f() {
		if err := e.take(ctx); err != nil {
			return e.stalled(err)
		}
	}
	return nil
}

// more reports whether a side that has done n of its part has more to do.
func (e *engine) more(n uint64) bool {
	if e.cfg.Duration > 0 {
		return !e.time.expired()
	}
	return n < uint64(e.cfg.Iters)
}

// ping runs the latency of READs and atomics: one at a time, each until it is
// complete.
func (e *engine) ping(ctx context.Context, at *rounds) error {
	e.time.begin(time.Now())
	for n := uint64(0); e.more(n); n++ {
		if err := e.sendOne(at); err != nil {
			return err
		}
		if err := e.until(ctx, func() bool { return e.sent > n }); err != nil {
			return err
		}
	}
	return nil
}

// pingPong runs the latency of SENDs: the client sends first, each end answers
// every message.
func (e *engine) pingPong(ctx context.Context, at *rounds) error {
	if e.cfg.Client() {
		e.time.begin(time.Now())
	}
	waiting := newTimed(ctx, &e.time)
	defer waiting.stop()
	var sent, received uint64
	for e.more(sent) || e.more(received) {
		if e.more(received) && (sent > 0 || !e.cfg.Client()) {
			err := e.until(waiting.ctx(), func() bool { return e.received > received })
			if e.time.expired() && ctx.Err() == nil {
				return nil
			}
			if err != nil {
				return err
			}
			received++
			if err := e.repost(); err != nil {
				return err
			}
		}
		if !e.more(sent) {
			continue
		}
		if err := e.sendOne(at); err != nil {
			return err
		}
		sent++
		if err := e.until(ctx, func() bool { return e.sent >= sent }); err != nil {
			return err
		}
	}
	return nil
}

// volley runs the latency of WRITEs: each end waits for the peer's message to
// show in memory, by a count in its last byte, and answers with its own.
func (e *engine) volley(ctx context.Context, at *rounds) error {
	post, poll := &e.d.local(0)[e.size-1], &e.d.shared(0)[e.size-1]
	e.time.begin(time.Now())
	var sent, received uint64
	for e.more(sent) || e.more(received) {
		if e.more(received) && (sent > 0 || e.cfg.Client()) { // the server serves
			seen, err := e.spin(ctx, poll, byte(received+1))
			if err != nil || !seen {
				return err
			}
			received++
		}
		if !e.more(sent) {
			continue
		}
		sent++
		*post = byte(sent)
		if err := e.sendOne(at); err != nil {
			return err
		}
		if err := e.until(ctx, func() bool { return e.sent >= sent }); err != nil {
			if e.time.expired() {
				return nil // the peer's time was over first, and there is no word of goodbye
			}
			return err
		}
	}
	return nil
}

// Spinning is for messages that come soon. After some 200 µs the processor is
// better given to who may be sending one.
const (
	eagerSpins  = 200
	restBetween = 20 * time.Microsecond
)

// spin waits until a byte of the region that the peer writes has a value, with the
// NIC driven from here. It returns false when the duration of the test ends first.
func (e *engine) spin(ctx context.Context, b *byte, want byte) (bool, error) {
	for spins := 0; loadByte(b) != want; spins++ {
		n, err := e.d.cq.Poll(e.wcs)
		if err != nil {
			return false, err
		}
		if err := e.account(e.wcs[:n]); err != nil {
			return false, err
		}
		if spins < eagerSpins {
			continue
		}
		if err := ctx.Err(); err != nil {
			return false, e.stalled(tools.Cause(ctx, err))
		}
		if e.time.expired() {
			return false, nil
		}
		time.Sleep(restBetween)
	}
	return true, nil
}

// loadByte reads a byte that the NIC may be writing. All before it has been
// written when it has.
func loadByte(b *byte) byte {
	at := uintptr(unsafe.Pointer(b))
	word := (*uint32)(unsafe.Pointer(b))
	if off := at % 4; off != 0 {
		word = (*uint32)(unsafe.Add(unsafe.Pointer(b), -int(off)))
	}
	v := atomic.LoadUint32(word)
	return (*[4]byte)(unsafe.Pointer(&v))[at%4]
}
