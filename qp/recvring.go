package qp

import (
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce/wr"
)

// RecvWR is a receive work request: where the next message that needs one goes.
// Bytes fill the entries in order.
type RecvWR struct {
	ID  uint64
	SGE []mr.SGE
}

// recvRing holds posted receives in order. Its memory is taken at the first
// push: most queue pairs of a large fabric stay idle.
type recvRing struct {
	limit, sge int // set once

	slots      []recvSlot
	spans      []mr.Span
	mask       uint32
	head, tail uint32 // count up
}

type recvSlot struct {
	id uint64
	n  int32 // spans
}

func (r *recvRing) len() int { return int(r.tail - r.head) }

func (r *recvRing) full() bool { return r.len() >= r.limit }

// next returns room for the spans of the receive to be pushed.
func (r *recvRing) next() []mr.Span {
	if r.slots == nil {
		n := uint32(1)
		for int(n) < r.limit {
			n <<= 1
		}
		r.slots, r.mask = make([]recvSlot, n), n-1
		r.spans = make([]mr.Span, int(n)*r.sge)
	}
	at := int(r.tail&r.mask) * r.sge
	return r.spans[at : at : at+r.sge]
}

// push appends a receive whose spans were appended to what next returned.
func (r *recvRing) push(id uint64, spans []mr.Span) {
	r.slots[r.tail&r.mask] = recvSlot{id, int32(len(spans))}
	r.tail++
}

// take moves the oldest receive to out.
func (r *recvRing) take(out *wr.Receive) bool {
	if r.head == r.tail {
		return false
	}
	i := r.head & r.mask
	at := int(i) * r.sge
	spans := r.spans[at : at+int(r.slots[i].n)]
	out.ID = r.slots[i].id
	out.Spans = append(out.Spans[:0], spans...)
	clear(spans)
	r.head++
	return true
}

// reset forgets everything without completions.
func (r *recvRing) reset() {
	clear(r.spans)
	r.head, r.tail = 0, 0
}

// resolve checks the entries of a work request against the domain and appends
// where they lie to spans, which has room. Empty entries name no bytes, so
// their keys do not matter.
func resolve(pd *mr.PD, sge []mr.SGE, need mr.Access, spans []mr.Span) ([]mr.Span, error) {
	for i := range sge {
		if sge[i].Length == 0 {
			continue
		}
		s, err := pd.Local(sge[i], need)
		if err != nil {
			return spans, sgeError(pd, i, sge[i], need, err)
		}
		spans = append(spans, s)
	}
	return spans, nil
}

func sgeError(pd *mr.PD, i int, s mr.SGE, need mr.Access, err error) error {
	return &SGEError{Index: i, Err: pd.Explain(err, "local access", s.LKey, s.Addr, uint64(s.Length), need)}
}
