package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gohixl/hixl"
)

// initiator is the requester's side of a cell: it keeps depth messages
// outstanding on each lane, or one in all, and takes their completions. Between
// open and close it allocates nothing in timed parts.
type initiator struct {
	*lanes
	op   operation
	lane []lane
	wcs  []hixl.Completion
	done atomic.Uint64 // messages completed on all lanes; the watchdog reads it
}

// lane is one queue pair's walk through the region.
type lane struct {
	index int
	qp    *hixl.QP
	walk  walker
	wrs   []hixl.SendWR // one group, the last signaled
	done  uint64        // messages completed
}

// operation builds the work requests of one operation and looks at what they
// brought back.
type operation interface {
	// build fills the parts of wr that change from message to message. n counts
	// the lane's messages from 0; dst and src are where it lies.
	build(wr *hixl.SendWR, lane int, n uint64, dst, src int)
	// completed looks at messages [from, to) of a lane.
	completed(lane int, from, to uint64) error
	// begin starts a round, before which each lane has sent so many messages;
	// end looks at the round as a whole.
	begin(key uint64, sent []uint64)
	end() error
}

// operation makes the cell's operation, and the work request that it varies.
func (e *endpoint) operation(l *lanes, peer *welcome) (operation, hixl.SendWR) {
	switch l.cell.Op {
	case OpCAS:
		return e.casOperation(l, peer)
	case OpFAA:
		return e.faaOperation(l, peer)
	default:
		return e.dataOperation(l.cell, peer)
	}
}

func newInitiator(l *lanes, op operation, proto hixl.SendWR) *initiator {
	in := &initiator{lanes: l, op: op, wcs: make([]hixl.Completion, 64), lane: make([]lane, len(l.qps))}
	for i := range in.lane {
		in.lane[i] = lane{index: i, qp: l.qps[i], walk: l.lay.walk(i), wrs: make([]hixl.SendWR, l.cell.group())}
		for k := range in.lane[i].wrs {
			wr := &in.lane[i].wrs[k]
			*wr = proto
			wr.SGE = append([]hixl.SGE(nil), proto.SGE...)
		}
	}
	return in
}

// post sends the next messages of a lane, the last of them signaled.
func (in *initiator) post(l *lane, group int) error {
	wrs := l.wrs[:group]
	for i := range wrs {
		wr, n := &wrs[i], l.walk.n
		dst, src := l.walk.next()
		in.op.build(wr, l.index, n, dst, src)
		wr.ID, wr.Flags = wrID(l.index, n+1), 0
	}
	wrs[group-1].Flags = hixl.Signaled
	return l.qp.PostSend(wrs...)
}

// take waits for completions and hands what they finish to the operation.
func (in *initiator) take(ctx context.Context) ([]hixl.Completion, error) {
	n, err := in.sendCQ.Wait(ctx, in.wcs)
	if err != nil {
		return nil, err
	}
	for i := range in.wcs[:n] {
		wc := &in.wcs[i]
		if err := wc.Err(); err != nil {
			return nil, err
		}
		index, upTo := splitID(wc.WRID)
		l := &in.lane[index]
		if upTo <= l.done || upTo > l.walk.n {
			return nil, fmt.Errorf("completion of message %d of queue pair %d after that of %d, with %d posted", upTo, index, l.done, l.walk.n)
		}
		if err := in.op.completed(index, l.done, upTo); err != nil {
			return nil, err
		}
		in.done.Add(upTo - l.done)
		l.done = upTo
	}
	return in.wcs[:n], nil
}

// stream keeps depth messages outstanding on every lane until the time is over
// and at least least messages are out, then waits for the rest. It returns how
// many there were and how long it took, from the first post to the last
// completion.
func (in *initiator) stream(ctx context.Context, d time.Duration, least uint64) (uint64, time.Duration, error) {
	group := in.cell.group()
	start, first := time.Now(), in.done.Load()
	posted := uint64(0)
	for i := range in.lane {
		for n := 0; n+group <= in.cell.Depth; n += group {
			if err := in.post(&in.lane[i], group); err != nil {
				return 0, 0, err
			}
			posted += uint64(group)
		}
	}
	for in.done.Load()-first < posted {
		wcs, err := in.take(ctx)
		if err != nil {
			return 0, 0, err
		}
		if posted >= least && time.Since(start) >= d {
			continue
		}
		for i := range wcs {
			index, _ := splitID(wcs[i].WRID)
			if err := in.post(&in.lane[index], group); err != nil {
				return 0, 0, err
			}
			posted += uint64(group)
		}
	}
	return posted, time.Since(start), nil
}

// pingPong sends one message at a time on the first lane and records how long
// each takes, from before the post to the completion in hand.
func (in *initiator) pingPong(ctx context.Context, d time.Duration, least uint64, h histogram) error {
	before := time.Now()
	end := before.Add(d)
	for n := uint64(0); n < least || before.Before(end); n++ {
		if err := in.post(&in.lane[0], 1); err != nil {
			return err
		}
		if _, err := in.take(ctx); err != nil {
			return err
		}
		now := time.Now()
		h.add(now.Sub(before))
		before = now
	}
	return nil
}

// moved is how far the cell has come. Any goroutine may ask.
func (in *initiator) moved() mark {
	return mark{messages: in.done.Load(), packets: in.acknowledged()}
}

// spans returns the messages that each lane has sent since from.
func (in *initiator) spans(from []uint64) []span {
	out := make([]span, len(in.lane))
	for i := range out {
		out[i] = span{From: from[i], To: in.lane[i].walk.n}
	}
	return out
}

// sent returns the number of messages that each lane has sent so far.
func (in *initiator) sent() []uint64 {
	out := make([]uint64, len(in.lane))
	for i := range out {
		out[i] = in.lane[i].walk.n
	}
	return out
}
