package nic

import (
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
)

// follow handles packets of a train, from packet i on, that only continue what the
// one before, in r.pkt, goes on with: packets inside a message that differ in PSN
// and AckReq alone. What was judged of that one holds for them, so it is neither
// looked for nor checked again: the headers are compared, the engine says once
// where all of them go, and each is copied and its ICRC checked before it counts.
// It returns how many packets were dealt with. The one at which it stops has its
// effect in the usual way. q is locked.
func (r *receiver) follow(now mono.Time, q *Queue, v *qp.View, rx *transport.Rx, h *roce.Headers, i int) (n int) {
	p := &r.pkt
	if q.slow != nil || p.Opcode.IsRequest() && (q.reading || q.ReadsPending()) {
		return 0 // each would be asked about
	}
	to, most := q.Follow(p, v, rx.Packets()-i)
	if most == 0 || to.Region.Bytes() == nil {
		return 0
	}
	good, bad, asks, last := 0, 0, false, rx.Packet(i-1)
	for good < most {
		b := rx.Packet(i + good)
		ask, ok := roce.Continues(last, b)
		if !ok || !r.loan.take(&to) {
			break
		}
		h.ID = rx.ID + uint16(i+good)
		if !r.copyPart(&to, len(p.Payload)*good, v, rx, h, b) {
			r.counts.drop(DropICRC)
			bad = 1
			break
		}
		good, asks, last = good+1, asks || ask, b
	}
	if good > 0 {
		q.Followed(now, p, good, asks)
		r.counts.packets += uint64(good)
		r.counts.bytes += uint64(good * len(last))
		if rx.TOS&ecnMask == ecnMask {
			q.Congested(now)
		}
	}
	return good + bad
}

// copyPart copies the payload of a packet without extension headers and pad to
// offset off of a span that is lent, and reports whether the ICRC is right.
func (r *receiver) copyPart(to *mr.Span, off int, v *qp.View, rx *transport.Rx, h *roce.Headers, b []byte) bool {
	icrc := len(b) - roce.ICRCLen
	data := b[roce.BTHLen:icrc]
	sum := r.sums.of(v).Begin(h, h.ID, b[:roce.BTHLen], len(b)).Copy(to.Bytes()[off:off+len(data)], data)
	return r.right(sum, v, rx, h, b)
}

// right reports whether the sum of everything before it is the ICRC of b.
func (r *receiver) right(sum roce.Sum, v *qp.View, rx *transport.Rx, h *roce.Headers, b []byte) bool {
	icrc := b[len(b)-roce.ICRCLen:]
	if rx.HaveID || !h.Src.Is4() {
		return sum.Equals(icrc)
	}
	_, ok := sum.Matches(h, icrc, len(b), largestID(v))
	return ok
}

// sums are those of the headers of packets that came last, all from the peer of one
// view.
type sums struct {
	view     *qp.View
	template roce.Template
}

// of returns the template for packets of a connection, which begins anew with each
// view.
func (s *sums) of(v *qp.View) *roce.Template {
	if s.view != v {
		s.view, s.template = v, roce.Template{}
	}
	return &s.template
}
