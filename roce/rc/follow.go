package rc

import (
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// Follow looks beyond p, the packet that was accepted last, if it lies inside a
// SEND, a WRITE or the answer to a READ: of up to n packets that are like p but for
// the PSN and AckReq, each of which follows the one before, the first k will be
// placed one behind the other in the span to, all of which they fill. For each of
// them that is what Predict says, so it may be copied on the same terms; k is 0
// where nothing is known. Nothing changes.
func (c *RC) Follow(p *roce.Packet, n int) (to mr.Span, k int) {
	size := uint64(len(p.Payload))
	switch {
	case c.common.failed || n <= 0 || size != c.common.mtu || p.Pad != 0:
	case p.Opcode == roce.OpWriteMiddle || p.Opcode == roce.OpSendMiddle:
		return c.resp.follow(p, uint64(n))
	case p.Opcode == roce.OpReadRespMiddle:
		return c.req.follow(p, uint64(n))
	}
	return mr.Span{}, 0
}

// Followed takes k packets, at most as many as [RC.Follow] found, whose payload was
// copied right after it and whose ICRC was right: it is Placed for each of them.
// ackReq says whether any of them asks for an acknowledgement.
func (c *RC) Followed(now mono.Time, p *roce.Packet, k int, ackReq bool) {
	if p.Opcode.IsRequest() {
		c.resp.followed(uint64(k)*uint64(len(p.Payload)), uint64(k), ackReq)
	} else {
		c.req.followed(now, k)
	}
}

// follow is for a packet inside a SEND or WRITE.
func (s *responder) follow(p *roce.Packet, n uint64) (to mr.Span, k int) {
	t := wr.TraitsOf(p.Opcode)
	if s.fault.set || wr.Extend(s.accepted, p.PSN) != -1 || s.pend.Len() > 0 || !s.inSequence(t) || !s.allowed(p.Opcode, t) {
		return mr.Span{}, 0
	}
	if t&wr.TraitSend != 0 {
		return part(s.recv.Spans, s.msg.received, n, s.c.common.mtu)
	}
	n = min(n, (s.msg.length-s.msg.received-1)/s.c.common.mtu) // the last packet has something too
	return part([]mr.Span{s.msg.region}, s.msg.received, n, s.c.common.mtu)
}

// followed is placed for k packets inside a message, of size bytes.
func (s *responder) followed(size, k uint64, ackReq bool) {
	s.nak = nakNone
	s.msg.received += size
	s.accepted += k
	s.exec += k
	s.wantAck = s.wantAck || ackReq
}

// follow is for a packet inside the answer to a READ.
func (r *requester) follow(p *roce.Packet, n uint64) (to mr.Span, k int) {
	if !r.started || r.una >= r.hi || wr.Extend(r.una, p.PSN) != -1 {
		return mr.Span{}, 0
	}
	w := r.q.At(r.ack)
	i := r.una - w.First
	if w.Op != wr.OpRead || w.Discard || i%r.readChunk == 0 {
		return mr.Span{}, 0
	}
	n = min(n, r.partEnd(w, i)-i-1, r.hi-r.una)
	return part(w.Spans, i*r.c.common.mtu, n, r.c.common.mtu)
}

// followed is Placed for k packets inside an answer.
func (r *requester) followed(now mono.Time, k int) {
	for range k {
		from := r.una
		r.una++
		r.progress(now, from, false)
	}
}

// part returns how many of n pieces of size bytes lie in one span, the first of them
// at offset off of the concatenation of spans, and where.
func part(spans []mr.Span, off, n, size uint64) (to mr.Span, k int) {
	for i := range spans {
		s := &spans[i]
		if l := uint64(s.Len); off >= l {
			off -= l
			continue
		}
		k = int(min((uint64(s.Len)-off)/size, n))
		return s.Sub(uint32(off), uint32(uint64(k)*size)), k
	}
	return mr.Span{}, 0
}
