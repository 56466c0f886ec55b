package rc

import (
	"encoding/binary"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// response processes a packet of the peer's responder (§3.9).
func (r *requester) response(now mono.Time, p *roce.Packet) wr.Work {
	d := wr.Extend(r.una, p.PSN)
	if !r.started || d < 0 || r.una+uint64(d) >= r.hi {
		if d == -1 && p.Opcode == roce.OpAcknowledge {
			r.credits(p.AETH.Syndrome) // a "ghost" ACK may carry new ones (§3.6)
		}
		r.c.common.stats.StaleResponses++
		return wr.Work{}
	}
	v := r.una + uint64(d)
	kind := roce.AckACK
	if p.Opcode.Has(roce.HasAETH) {
		kind = p.AETH.Syndrome.Kind()
	}
	isAck := p.Opcode == roce.OpAcknowledge
	if kind == roce.AckReserved || (kind != roce.AckACK && !isAck) || !knownNAK(p.AETH.Syndrome, kind) {
		return wr.Work{} // §1.8, §3.11: ignored
	}
	if r.seqErr && v != r.una {
		r.c.common.stats.StaleResponses++
		return wr.Work{}
	}
	from := r.una
	ackTo := v
	if isAck && kind == roce.AckACK {
		r.credits(p.AETH.Syndrome)
		ackTo = v + 1
	}
	r.advance(ackTo)
	passed := r.una < ackTo // a READ or atomic in between has not been answered
	var work wr.Work
	if !passed && !isAck {
		work = r.answer(p)
	}
	if r.c.common.failed {
		return work
	}
	r.progress(now, from, passed || kind != roce.AckACK)
	switch {
	case passed:
		r.impliedNAK(now)
	case kind != roce.AckACK:
		r.nak(now, p.AETH.Syndrome)
	}
	return work
}

// knownNAK reports whether a NAK's code has a meaning.
func knownNAK(s roce.Syndrome, kind roce.AckKind) bool {
	return kind != roce.AckNAK || s <= roce.SynNakRD
}

func (r *requester) credits(s roce.Syndrome) {
	if n, ok := s.Credits(); ok {
		r.c.common.stats.CreditsSeen = n
	} else if s.Kind() == roce.AckACK {
		r.c.common.stats.CreditsSeen = -1
	}
}

// advance acknowledges SENDs and WRITEs up to the sequence number to. It stops
// at a READ or atomic: only its own answer completes that (R2).
func (r *requester) advance(to uint64) {
	for r.una < to {
		w := r.q.At(r.ack)
		if w.Op.TakesRead() {
			return
		}
		r.una = min(w.End(), to)
		if r.una == w.End() {
			r.ack++
		}
	}
}

// answer takes a READ response or atomic result for the packet at una.
func (r *requester) answer(p *roce.Packet) wr.Work {
	w := r.q.At(r.ack)
	switch {
	case w.Op == wr.OpRead && p.Opcode != roce.OpAtomicAck:
		return r.readData(w, p)
	case (w.Op == wr.OpCmpSwap || w.Op == wr.OpFetchAdd) && p.Opcode == roce.OpAtomicAck:
		r.answered(w, 1, w.End())
		binary.NativeEndian.PutUint64(r.word[:], p.AtomicAck)
		return r.place(w, r.ack-1, r.word[:], 0)
	case w.Op == wr.OpAtomicWrite && p.Opcode == roce.OpReadRespOnly && len(p.Payload) == 0:
		r.answered(w, 1, w.End())
	default:
		r.bad(cq.StatusBadResponse)
	}
	return wr.Work{}
}

// bad fails the request whose answer makes no sense.
func (r *requester) bad(status cq.Status) {
	r.fail(r.ack, Cause{Status: status, PSN: wr.Wire(r.una)})
}

// readData takes one packet of a READ's answer (§3.9, §3.11). Its length is
// checked against what is still missing before anything is placed (A13).
func (r *requester) readData(w *wr.WQE, p *roce.Packet) wr.Work {
	i := r.una - w.First
	end := r.partEnd(w, i)
	if !r.legalAnswer(w, p.Opcode) {
		r.bad(cq.StatusBadResponse)
		return wr.Work{}
	}
	off, n := w.Payload(i, r.c.common.mtu)
	if uint64(len(p.Payload)) != n {
		r.bad(cq.StatusLocalLength)
		return wr.Work{}
	}
	index := r.ack
	r.answered(w, 1, w.First+end)
	if n == 0 {
		return wr.Work{}
	}
	return r.place(w, index, p.Payload, off)
}

// legalAnswer reports whether op can be the next packet of the answer to w.
func (r *requester) legalAnswer(w *wr.WQE, op roce.Opcode) bool {
	i := r.una - w.First
	return legalReadOpcode(op, r.una == r.ansStart, i%r.readChunk == 0, i+1 == r.partEnd(w, i))
}

// legalReadOpcode is the sequence rule within an answer. One that was asked for
// again may begin anew, or go on in the old numbering as rxe 6.1 does (§3.13).
func legalReadOpcode(op roce.Opcode, again, begins, ends bool) bool {
	switch op {
	case roce.OpReadRespFirst:
		return !ends && (begins || again)
	case roce.OpReadRespMiddle:
		return !ends && (!begins || again)
	case roce.OpReadRespLast:
		return ends && (!begins || again)
	case roce.OpReadRespOnly:
		return ends && (begins || again)
	}
	return false
}

// answered moves una over n packets of the answer to w; end is where the
// request packet that asked for them ends.
func (r *requester) answered(w *wr.WQE, n, end uint64) {
	r.una += n
	// The packet that asked counts against the depth only if it has been sent
	// since the last rewind.
	if r.una == end && r.send >= end && r.rdOut > 0 {
		r.rdOut--
	}
	if r.una == w.End() {
		r.ack++
	}
}

// place asks for data to be copied to offset off of request i's memory.
func (r *requester) place(w *wr.WQE, i uint64, data []byte, off uint64) wr.Work {
	if w.Discard {
		return wr.Work{}
	}
	r.c.common.spans = wr.Slice(r.c.common.spans[:0], w.Spans, off, uint64(len(data)))
	w.Busy++
	r.uncommitted++
	return wr.Work{Kind: wr.WorkPlace, Token: tokenRead | i, Spans: r.c.common.spans, Data: data}
}
