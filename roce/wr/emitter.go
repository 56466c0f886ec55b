package wr

import "github.com/gohixl/hixl/cq"

// Emitter is the send queue of an engine without acknowledgements: requests leave
// once, in order, and complete when they have left and their payload has been
// read. Who embeds it calls Retire after Left, Fetched, Fail, and after a post in
// the error state.
type Emitter struct {
	SendQueue
	// cur is the request being emitted. Those before wait only for their payload.
	cur    uint64
	failed bool

	blamed uint64    // the request that completes with status
	status cq.Status // success: none is blamed
}

// tokenBit keeps tokens from being 0, which means that there is none.
const tokenBit = 1 << 63

// Current returns the request being emitted, nil when there is none, as in the
// error state.
func (e *Emitter) Current() *WQE {
	if e.failed || e.cur == e.Tail {
		return nil
	}
	return e.At(e.cur)
}

// Attach gives packet o, the newest of b, its payload: the part [off, off+n) of
// the current request.
func (e *Emitter) Attach(b *Batch, o *Out, off, n uint64) {
	w := e.At(e.cur)
	switch {
	case n == 0:
	case w.IsInline:
		o.Inline = w.Inline[off : off+n]
	default:
		b.Gather(o, w.Spans, off, n)
		o.Token = e.cur | tokenBit
		w.Busy++
	}
}

// Left notes that all of the current request has been emitted.
func (e *Emitter) Left() { e.cur++ }

// AllRead reports whether no payload of what was emitted is still to be read.
func (e *Emitter) AllRead() bool { return e.cur == e.Head }

// Fetched notes that the payload with this token has been read, or could not be.
// The first that could not is blamed: the engine must fail with the status
// returned, which otherwise is success.
func (e *Emitter) Fetched(token uint64, o Outcome) cq.Status {
	i := token &^ tokenBit
	if !e.Has(i) || e.At(i).Busy == 0 {
		return cq.StatusSuccess
	}
	e.At(i).Busy--
	if o == Done || e.failed {
		return cq.StatusSuccess
	}
	e.blamed, e.status = i, cq.StatusLocalQPOperation
	if o == Revoked {
		e.status = cq.StatusLocalProtection
	}
	return e.status
}

// Blame lets the oldest request, if there is one, complete with a status that
// says what failed: neither success nor flushed.
func (e *Emitter) Blame(s cq.Status) {
	if !e.failed && e.Len() > 0 && s != cq.StatusSuccess && s != cq.StatusFlushed {
		e.blamed, e.status = e.Head, s
	}
}

// Fail moves to the error state: what has not left completes flushed.
func (e *Emitter) Fail() { e.failed = true }

// Failed reports whether it is in the error state.
func (e *Emitter) Failed() bool { return e.failed }

// Retire takes the oldest completed request whose completion is asked for, or that
// failed, and says how it ended; nil when there is none. It is valid until the
// next Push.
func (e *Emitter) Retire() (*WQE, cq.Status) {
	for e.Head < e.Tail && e.At(e.Head).Busy == 0 {
		status := cq.StatusSuccess
		switch {
		case e.status != cq.StatusSuccess && e.Head == e.blamed:
			status = e.status
		case e.Head < e.cur:
		case e.failed:
			status = cq.StatusFlushed
		default:
			return nil, status
		}
		w := e.At(e.Head)
		e.Pop()
		e.cur = max(e.cur, e.Head)
		if w.Flags&Signaled != 0 || status != cq.StatusSuccess {
			return w, status
		}
	}
	return nil, cq.StatusSuccess
}
