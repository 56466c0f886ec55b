package qp

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// SendWR is a send work request. Posting copies it; its slices are the caller's
// again afterwards, but the memory that SGE names must stay as it is (or, for
// READ and atomics, untouched) until the request has completed.
type SendWR struct {
	// ID comes back in the completion.
	ID    uint64
	Op    wr.Op
	Flags wr.Flags
	// SGE is the local memory: the source, or for READ and atomics the
	// destination.
	SGE []mr.SGE
	// Inline, if not empty, is the payload itself and takes the place of SGE. It
	// is copied. With the flag wr.Inline and no Inline, what SGE names is copied.
	Inline []byte
	// RemoteAddr and RKey name the peer's memory, but for SENDs.
	RemoteAddr uint64
	RKey       uint32
	// Imm is the immediate of OpSendImm and OpWriteImm, InvKey the peer's key that
	// OpSendInv invalidates.
	Imm, InvKey uint32
	// Compare and SwapAdd are the operands of atomics.
	Compare, SwapAdd uint64
	// To is where a datagram goes; connected queue pairs ignore it.
	To wr.Destination
}

// PostSend appends work requests to the send queue, in order. The error is a
// *[PostError]: requests before its index are posted, the rest is not. Whoever
// calls it drains the queue pair afterwards.
func (q *QP) PostSend(now mono.Time, wrs []SendWR) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range wrs {
		if err := q.postSend(now, &wrs[i]); err != nil {
			return &PostError{Index: i, WRID: wrs[i].ID, Err: err}
		}
	}
	return nil
}

func (q *QP) postSend(now mono.Time, w *SendWR) error {
	if s := q.now(); !rules[s].postSend {
		return &StateError{Op: "post send", State: s, Advice: sendAdvice(s)}
	}
	if w.Op > wr.OpAtomicWrite {
		return &WorkRequestError{fmt.Sprintf("operation %d", w.Op), "SEND to ATOMIC WRITE"}
	}
	r := &q.req
	*r = wr.Request{
		ID: w.ID, Op: w.Op, Flags: w.Flags &^ wr.Inline, RemoteAddr: w.RemoteAddr, RKey: w.RKey,
		Imm: w.Imm, InvKey: w.InvKey, Compare: w.Compare, SwapAdd: w.SwapAdd,
	}
	if q.cfg.Type >= UD {
		if w.To.Addr.Zone() != "" {
			return &WorkRequestError{"a destination with a zone", "an address without one: a NIC sits on one link"}
		}
		r.To = wr.Destination{
			Addr: plain(w.To.Addr), QPN: w.To.QPN, QKey: w.To.QKey, TrafficClass: w.To.TrafficClass, FlowLabel: w.To.FlowLabel,
		}
		if err := q.checkDestination(&r.To); err != nil {
			return err
		}
	}
	if q.cfg.SignalAll {
		r.Flags |= wr.Signaled
	}
	if len(w.SGE) > q.cfg.MaxSendSGE {
		return tooManySGE(len(w.SGE), q.cfg.MaxSendSGE)
	}
	if len(w.Inline) > 0 || w.Flags&wr.Inline != 0 || w.Op == wr.OpAtomicWrite {
		if err := q.inline(w, r); err != nil {
			return err
		}
		return q.submit(now, r)
	}
	var need mr.Access
	if w.Op.TakesRead() {
		need = mr.LocalWrite
	}
	spans, err := resolve(q.cfg.PD, w.SGE, need, q.spans[:0])
	if err != nil {
		return err
	}
	r.Spans = spans
	err = q.submit(now, r)
	clear(spans) // no region is kept alive by scratch
	return err
}

func (q *QP) submit(now mono.Time, r *wr.Request) error {
	if q.rc != nil {
		return q.rc.Post(now, r)
	}
	return q.engine.Post(now, r)
}

// plain is a without zone, and without what a points to: nothing that a caller
// posts needs to live on the heap.
func plain(a netip.Addr) netip.Addr {
	switch {
	case a.Is4():
		return netip.AddrFrom4(a.As4())
	case a.Is6():
		return netip.AddrFrom16(a.As16())
	}
	return netip.Addr{}
}

// checkDestination refuses a datagram's destination that no packet could reach.
func (q *QP) checkDestination(to *wr.Destination) error {
	av := AddressVector{Addr: to.Addr, FlowLabel: to.FlowLabel}
	if why := av.check(q.cfg.Local); why != "" {
		return &WorkRequestError{fmt.Sprintf("destination %v with flow label %#x", to.Addr, to.FlowLabel), why}
	}
	if to.QPN == 0 || to.QPN > roce.QPNMask {
		return &WorkRequestError{fmt.Sprintf("destination queue pair %#x", uint32(to.QPN)), "1 to 0xffffff"}
	}
	return nil
}

func sendAdvice(s State) string {
	switch s {
	case RTR:
		return "move it to RTS first"
	case Reset:
		return "connect it first; one that was closed stays so, make another"
	default:
		return "connect it first"
	}
}

func tooManySGE(n, limit int) error {
	return &WorkRequestError{fmt.Sprintf("%d scatter/gather entries", n), fmt.Sprintf("%d, the limit given when the queue was made", limit)}
}

// inline makes r carry its payload.
func (q *QP) inline(req *SendWR, r *wr.Request) error {
	if req.Op.TakesRead() && req.Op != wr.OpAtomicWrite {
		return &WorkRequestError{"inline data with " + req.Op.String(), "entries for the result"}
	}
	if q.copied == nil {
		q.copied = make([]byte, MaxInline)
	}
	data := req.Inline
	if len(data) == 0 {
		var err error
		if data, err = q.gather(req.SGE); err != nil {
			return err
		}
	} else if len(req.SGE) > 0 {
		return &WorkRequestError{"both inline data and scatter/gather entries", "one of the two"}
	}
	limit := q.cfg.MaxInline
	if req.Op == wr.OpAtomicWrite {
		limit = wordSize
	}
	if len(data) > limit {
		return tooLongInline(len(data), limit)
	}
	r.Flags |= wr.Inline
	r.Inline = q.copied[:copy(q.copied, data)] // the caller's may be on its stack
	return nil
}

const wordSize = 8

// gather copies what entries name, at most MaxInline bytes.
func (q *QP) gather(sge []mr.SGE) ([]byte, error) {
	n := 0
	for i := range sge {
		if sge[i].Length == 0 {
			continue
		}
		if uint64(sge[i].Length) > uint64(MaxInline-n) {
			return nil, tooLongInline(n+int(sge[i].Length), MaxInline)
		}
		s, err := q.cfg.PD.Local(sge[i], 0)
		if err != nil {
			return nil, sgeError(q.cfg.PD, i, sge[i], 0, err)
		}
		if !s.Acquire() {
			return nil, sgeError(q.cfg.PD, i, sge[i], 0, mr.FaultRevoked)
		}
		b := s.Bytes()
		copied := copy(q.copied[n:], b)
		s.Release()
		if copied < int(sge[i].Length) {
			return nil, &SGEError{Index: i, Err: fmt.Errorf("%w: give the data as Inline", ErrNotAddressable)}
		}
		n += copied
	}
	return q.copied[:n], nil
}

func tooLongInline(n, limit int) error {
	return &WorkRequestError{fmt.Sprintf("%d bytes of inline data", n), fmt.Sprintf("at most %d", limit)}
}

// Word is the inline data of an ATOMIC WRITE that stores v as a 64-bit number of
// this host's byte order.
func Word(v uint64) [wordSize]byte {
	var b [wordSize]byte
	binary.NativeEndian.PutUint64(b[:], v)
	return b
}

// PostRecv appends receives to the queue pair's own receive queue, in order. The
// error is a *[PostError]: receives before its index are posted, the rest is not.
// In the error state they are accepted and flushed: whoever calls it drains the
// queue pair then, which the result asks for.
func (q *QP) PostRecv(wrs []RecvWR) (drain bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range wrs {
		if err := q.postRecv(&wrs[i]); err != nil {
			return i > 0 && q.now() == Err, &PostError{Index: i, WRID: wrs[i].ID, Err: err}
		}
	}
	return q.now() == Err, nil
}

func (q *QP) postRecv(req *RecvWR) error {
	if s := q.now(); !rules[s].postRecv {
		return &StateError{Op: "post receive", State: s, Advice: "move it to INIT first"}
	}
	if q.cfg.SRQ != nil {
		return ErrShared
	}
	return q.recv.post(q.cfg.PD, req)
}
