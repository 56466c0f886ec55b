package rc

import (
	"encoding/binary"

	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// resource is what the responder remembers of a READ or atomic, so that a
// duplicate can be answered again (§4.4).
type resource struct {
	op     roce.Opcode
	used   bool
	active bool // something of it is to be sent
	replay bool // and it is not the first time
	first  uint64
	npsn   uint64
	va     uint64
	rkey   uint32
	length uint64
	msn    uint32
	result uint64  // of an atomic
	span   mr.Span // of a READ
	// next and begin are the PSN offsets of the response to be sent next and
	// of the one that began this answer.
	next, begin uint64
}

func (r *resource) end() uint64 { return r.first + r.npsn }

// newResource takes the oldest resource. One that has not been answered yet
// means that the peer exceeds the depth it was given (§4.14).
func (s *responder) newResource(p *roce.Packet, npsn uint64) (*resource, bool) {
	if s.res == nil {
		s.res = make([]resource, s.depth)
	}
	r := &s.res[s.resNext%uint64(len(s.res))]
	if r.active && !r.replay || r.used && r.first >= s.exec {
		return nil, false
	}
	if r.active {
		s.nactive--
	}
	*r = resource{op: p.Opcode, used: true, first: s.accepted, npsn: npsn}
	s.resNext++
	return r, true
}

// read accepts a READ request: it takes the PSNs of its answer at once (§4.8).
func (s *responder) read(p *roce.Packet) wr.Work {
	npsn := uint64(wr.Packets(uint64(p.RETH.Len), s.c.common.mtu))
	span, ok := s.readSpan(p.RETH)
	if !ok {
		s.fail(accessFault())
		return wr.Work{}
	}
	r, ok := s.newResource(p, npsn)
	if !ok {
		s.fail(invalidFault())
		return wr.Work{}
	}
	r.va, r.rkey, r.length, r.span = p.RETH.VA, p.RETH.RKey, uint64(p.RETH.Len), span
	s.accept(r)
	s.settle()
	return wr.Work{}
}

// readSpan resolves the memory of a READ; one of no bytes needs none (§4.11).
func (s *responder) readSpan(h roce.RETH) (mr.Span, bool) {
	if h.Len == 0 {
		return mr.Span{}, true
	}
	span, err := s.pd.Remote(h.RKey, h.VA, h.Len, mr.RemoteRead)
	return span, err == nil
}

// accept queues the effect of the newest resource.
func (s *responder) accept(r *resource) {
	s.pend.Push(placement{
		seq: r.first, npsn: r.npsn, done: r.op == roce.OpReadRequest,
		message: true, resource: true, remote: true, res: s.resNext - 1,
	})
	s.accepted += r.npsn
}

// atomic accepts a CMP_SWAP, FETCH_ADD or ATOMIC WRITE (§4.9, §6.1).
func (s *responder) atomic(p *roce.Packet) wr.Work {
	h, need := p.Atomic, mr.RemoteAtomic
	if p.Opcode == roce.OpAtomicWrite {
		h, need = atomicWrite(p), mr.RemoteWrite
	}
	if h.VA%8 != 0 || (p.Opcode == roce.OpAtomicWrite && p.RETH.Len != 8) {
		s.fail(invalidFault())
		return wr.Work{}
	}
	span, err := s.pd.Remote(h.RKey, h.VA, 8, need)
	if err != nil {
		s.fail(accessFault())
		return wr.Work{}
	}
	r, ok := s.newResource(p, 1)
	if !ok {
		s.fail(invalidFault())
		return wr.Work{}
	}
	s.accept(r)
	s.outstanding++
	s.c.common.spans = append(s.c.common.spans[:0], span)
	return wr.Work{
		Kind: wr.WorkAtomic, Token: tokenPlace | (s.pend.Tail - 1), Spans: s.c.common.spans,
		Op: p.Opcode, Operand: h.SwapAdd, Compare: h.Compare,
	}
}

// atomicWrite reads an ATOMIC WRITE, whose payload has 8 bytes, as if it were
// an atomic. The bytes go to memory as they came.
func atomicWrite(p *roce.Packet) roce.AtomicETH {
	return roce.AtomicETH{VA: p.RETH.VA, RKey: p.RETH.RKey, SwapAdd: binary.NativeEndian.Uint64(p.Payload)}
}

// activate makes the answer of resource i due.
func (s *responder) activate(i uint64) {
	r := &s.res[i%uint64(len(s.res))]
	r.msn = s.msn
	r.active = true
	s.nactive++
}

// duplicate answers a request that has been executed before, without executing
// it again (§4.4). d is its distance from the expected PSN.
func (s *responder) duplicate(p *roce.Packet, d int64) {
	s.c.common.stats.Duplicates++
	seq := s.accepted + uint64(d)
	if t := wr.TraitsOf(p.Opcode); t != 0 {
		if p.AckReq || t&wr.TraitLast != 0 {
			s.wantAck, s.dupAck = true, true
		}
		return
	}
	for i := range s.res {
		r := &s.res[i]
		if r.used && seq >= r.first && seq < r.end() && seq < s.exec {
			s.again(r, p, seq-r.first)
			return
		}
	}
}

// again lets a resource be answered once more, from PSN offset off.
func (s *responder) again(r *resource, p *roce.Packet, off uint64) {
	if p.Opcode != r.op {
		return
	}
	if r.op != roce.OpReadRequest {
		s.c.common.stats.AtomicsReplayed++
		s.reactivate(r, 0)
		return
	}
	// Only a part that ends where the original ended is the same READ.
	skip := off * s.c.common.mtu
	if skip > r.length || p.RETH.VA != r.va+skip || uint64(p.RETH.Len) != r.length-skip || p.RETH.RKey != r.rkey {
		return
	}
	if r.active && r.next <= off {
		return // it is still to be sent anyway
	}
	// The region may be gone by now, or its memory another's (R17).
	span, ok := s.readSpan(roce.RETH{VA: r.va, RKey: r.rkey, Len: uint32(r.length)})
	if !ok {
		f := accessFault()
		f.seq = r.first + off
		s.failEarly(f)
		return
	}
	r.span = span
	s.c.common.stats.ReadsReplayed++
	s.reactivate(r, off)
}

func (s *responder) reactivate(r *resource, off uint64) {
	if !r.active {
		r.active, r.replay = true, true
		s.nactive++
	}
	r.next, r.begin = off, off
}
