package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/cq"
)

// receiver keeps receives posted on a cell's lanes and checks every receive
// completion: its lane's order, its length and its immediate. It owns one
// goroutine, which stop ends.
type receiver struct {
	*lanes
	dst   *hixl.Region
	lane  []recvLane
	wcs   []hixl.Completion
	taken []atomic.Uint64 // messages received, a lane

	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has left
	err    error         // why; read after done
}

// recvLane is one lane's walk through the destination.
type recvLane struct {
	qp   *hixl.QP
	walk walker
	wrs  []hixl.RecvWR // one batch to post
	due  int           // receives taken and not posted again
}

// startReceiver posts the first receives, before the peer may send.
func startReceiver(l *lanes, dst *hixl.Region) (*receiver, error) {
	r := &receiver{
		lanes: l, dst: dst, lane: make([]recvLane, len(l.qps)), taken: make([]atomic.Uint64, len(l.qps)),
		wcs: make([]hixl.Completion, 64), done: make(chan struct{}),
	}
	posted := l.cell.receives()
	for i := range r.lane {
		ln := &r.lane[i]
		*ln = recvLane{qp: l.qps[i], walk: l.lay.walk(i), wrs: r.batch(posted / 4), due: posted}
		for ln.due >= len(ln.wrs) {
			if err := r.post(i, ln); err != nil {
				return nil, err
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		defer close(r.done)
		r.err = r.run(ctx)
	}()
	return r, nil
}

// batch makes receives for messages that carry their bytes (SEND), or only
// consume one (WRITE with immediate).
func (r *receiver) batch(n int) []hixl.RecvWR {
	wrs := make([]hixl.RecvWR, n)
	if r.cell.Op == OpSend {
		for i := range wrs {
			wrs[i].SGE = []hixl.SGE{{Length: uint32(r.cell.Size), LKey: r.dst.LKey()}}
		}
	}
	return wrs
}

// post posts one batch of receives on a lane.
func (r *receiver) post(index int, ln *recvLane) error {
	for i := range ln.wrs {
		wr, n := &ln.wrs[i], ln.walk.n
		dst, _ := ln.walk.next()
		wr.ID = wrID(index, n+1)
		if len(wr.SGE) > 0 {
			wr.SGE[0].Addr = r.dst.Addr() + uint64(dst)
		}
	}
	ln.due -= len(ln.wrs)
	return ln.qp.PostRecv(ln.wrs...)
}

func (r *receiver) run(ctx context.Context) error {
	for {
		n, err := r.recvCQ.Wait(ctx, r.wcs)
		if err != nil {
			return err
		}
		for i := range r.wcs[:n] {
			if err := r.take(&r.wcs[i]); err != nil {
				return err
			}
		}
	}
}

// take checks one completion and posts receives when a batch is due.
func (r *receiver) take(wc *hixl.Completion) error {
	if err := wc.Err(); err != nil {
		return err
	}
	index, n := splitID(wc.WRID)
	if m := r.check(wc, index, n); m != nil {
		return m
	}
	r.taken[index].Store(n)
	ln := &r.lane[index]
	if ln.due++; ln.due >= len(ln.wrs) {
		return r.post(index, ln)
	}
	return nil
}

// check compares a completion with what the lane's next message must give.
func (r *receiver) check(wc *hixl.Completion, index int, n uint64) error {
	bad := func(format string, args ...any) error {
		return &MismatchError{Detail: fmt.Sprintf("receive %d of queue pair %d: ", n-1, index) + fmt.Sprintf(format, args...)}
	}
	if want := r.taken[index].Load() + 1; n != want {
		return bad("completed before receive %d", want-1)
	}
	if wc.ByteLen != uint32(r.cell.Size) {
		return bad("length want %d, got %d", r.cell.Size, wc.ByteLen)
	}
	if r.cell.Op == OpWriteImm && (wc.Flags&cq.WithImm == 0 || wc.Imm != uint32(n-1)) {
		return bad("immediate want %#x, got %#x, completion flags %v", uint32(n-1), wc.Imm, wc.Flags)
	}
	return nil
}

// settled waits until every message of spans has been received: they have all
// been acknowledged, so the completions are on their way.
func (r *receiver) settled(ctx context.Context, spans []span) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	tick := time.NewTicker(settleTick)
	defer tick.Stop()
	for i := 0; i < len(spans); {
		n := r.taken[i].Load()
		switch {
		case n == spans[i].To:
			i++
			continue
		case n > spans[i].To:
			return &MismatchError{Detail: fmt.Sprintf("queue pair %d: %d messages received, %d sent", i, n, spans[i].To)}
		}
		select {
		case <-tick.C:
		case <-r.done:
			return r.err
		case <-ctx.Done():
			return &MismatchError{Detail: fmt.Sprintf("queue pair %d: %d messages received %v after all %d were acknowledged", i, n, settleTime, spans[i].To)}
		}
	}
	return nil
}

const (
	// settleTime is how long receive completions may lag behind the
	// acknowledgements that the requester has seen.
	settleTime = 10 * time.Second
	settleTick = 200 * time.Microsecond
)

// stop ends the goroutine. Nothing may be in flight any more.
func (r *receiver) stop() error {
	r.cancel()
	<-r.done
	if errors.Is(r.err, context.Canceled) {
		return nil
	}
	return r.err
}
