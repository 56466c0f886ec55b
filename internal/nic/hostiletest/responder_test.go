package hostiletest

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
)

// responder is the state of §4.1.
type responder struct {
	first, psn, msn uint32 // PSN expected first, and now
	nak             byte   // sequence or RNR NAK sent for psn, 0 for none
	rnrCode         byte
	depth           int
	heard           bool // COMM_EST was raised

	in      kind // of the message in progress, zero for none
	length  uint64
	got     uint64
	into    *region
	intoKey uint32
	at      uint64
	recv    *receive // held
	saved   []resource
	unsaid  int    // READs and atomics accepted in this batch and not answered yet
	asked   bool   // a request arrived in this batch
	owed    bool   // an ACK is owed in this batch,
	owedFor uint32 // at least of this packet
	done    []ack  // positions that an ACK may tell
}

// owe makes an ACK due for everything executed.
func (s *responder) owe() { s.owed, s.owedFor = true, (s.psn+mask24)&mask24 }

// newBatch forgets what is of one batch.
func (s *responder) newBatch() {
	s.owed, s.asked, s.unsaid = false, false, 0
	s.done = append(s.done[:0], ack{(s.psn + mask24) & mask24, s.msn})
}

// ack is a state that an acknowledgement may tell of.
type ack struct{ psn, msn uint32 }

// resource is what is kept of a READ or atomic (§4.4).
type resource struct {
	op       byte
	psn, n   uint32
	va       uint64
	rkey     uint32
	length   uint32
	msn      uint32
	original uint64
}

// request is §4.2.
func (c *conn) request(p *packet) {
	s := &c.resp
	s.asked = true
	if c.failed {
		c.want.inError++
		return
	}
	if c.state == qp.RTR && !s.heard && p.psn == s.first {
		s.heard = true
		c.event(qp.EventCommEst)
	}
	if p.op != opRead {
		s.unsaid = 0 // READs before it are answered before it takes effect (§3.8)
	}
	switch d := distance(p.psn, s.psn); {
	case d < 0:
		c.duplicate(p)
	case d > 0:
		c.want.outOfSequence++
		if s.nak == 0 {
			s.nak = nakSequence
			c.reply(reply{op: opAck, psn: s.psn, syndrome: nakSequence, msn: s.msn})
		}
	default:
		s.nak = 0
		c.expected(p)
	}
}

// expected is the order of checks of §4.3.
func (c *conn) expected(p *packet) {
	s, k := &c.resp, kindOf(p.op)
	switch {
	case !s.inSequence(k), !c.enabled(p.op, k), !k.message() && s.depth == 0:
		c.fault(nakInvalid, cq.StatusLocalQPOperation)
		return
	}
	if k.takes() {
		if s.recv = c.queue.take(); s.recv == nil {
			s.nak = synRNR
			c.reply(reply{op: opAck, psn: s.psn, syndrome: synRNR + s.rnrCode, msn: s.msn})
			return
		}
	}
	switch {
	case !p.rightLength(c.mtu), p.layout.headers != "" && p.layout.headers[0] == 'R' && p.length > 1<<31:
		c.fault(nakInvalid, cq.StatusLocalQPOperation)
	case k.send:
		c.send(p, k)
	case k.write:
		c.write(p, k)
	case p.op == opRead:
		c.read(p)
	default:
		c.atomic(p)
	}
}

// inSequence is §4.5.
func (s *responder) inSequence(k kind) bool {
	switch {
	case s.in.send:
		return k.send && !k.first
	case s.in.write:
		return k.write && !k.first
	}
	return !k.message() || k.first
}

// enabled checks the access flags of the queue pair. FLUSH is never enabled.
func (c *conn) enabled(op byte, k kind) bool {
	switch {
	case k.send:
		return true
	case k.write, op == opAtomicWrite:
		return c.access&mr.RemoteWrite != 0
	case op == opRead:
		return c.access&mr.RemoteRead != 0
	case op == opCmpSwap, op == opFetchAdd:
		return c.access&mr.RemoteAtomic != 0
	}
	return false
}

// send is §4.6.
func (c *conn) send(p *packet, k kind) {
	s := &c.resp
	if k.first {
		s.in, s.got = k, 0
	}
	if s.got+uint64(len(p.payload)) > s.recv.capacity() {
		c.fault(nakInvalid, cq.StatusLocalLength)
		return
	}
	c.touches(s.recv.late() && len(p.payload) > 0)
	s.recv.scatter(s.got, p.payload)
	s.got += uint64(len(p.payload))
	s.psn = (s.psn + 1) & mask24
	if k.last {
		c.ended(p, k, cq.Completion{Opcode: cq.OpRecv, ByteLen: uint32(s.got)})
	}
	c.executed(p)
}

// write is §4.7.
func (c *conn) write(p *packet, k kind) {
	s, n := &c.resp, uint64(len(p.payload))
	if k.first {
		s.in, s.length, s.got, s.into = k, uint64(p.length), 0, nil
		if p.length > 0 {
			var ok bool
			if s.into, s.at, ok = c.w.reach(c.pd, p.rkey, p.va, s.length, mr.RemoteWrite); !ok {
				c.fault(nakAccess, cq.StatusLocalAccess)
				return
			}
			s.intoKey = p.rkey
		}
	}
	if left := s.length - s.got; k.last && n != left || !k.last && n >= left {
		c.fault(nakInvalid, cq.StatusLocalQPOperation)
		return
	}
	if n > 0 {
		if !s.into.remote || s.into.rkey != s.intoKey { // revoked in the middle of the message
			c.fault(nakAccess, cq.StatusLocalAccess)
			return
		}
		c.touches(s.into.mem.late != nil)
		copy(s.into.at(s.at+s.got, n), p.payload)
	}
	s.got += n
	s.psn = (s.psn + 1) & mask24
	if k.last {
		c.ended(p, k, cq.Completion{Opcode: cq.OpRecvWriteImm, ByteLen: uint32(s.length)})
	}
	c.executed(p)
}

// ended completes a message, and its receive if it has one.
func (c *conn) ended(p *packet, k kind, wc cq.Completion) {
	s := &c.resp
	s.in = kind{}
	recv := s.recv
	s.recv = nil
	if recv == nil {
		s.msn = (s.msn + 1) & mask24
		return
	}
	wc.WRID = recv.id
	if k.imm {
		wc.Flags |= cq.WithImm
		wc.Imm = p.imm
	}
	if k.inv {
		wc.Flags |= cq.WithInv
		wc.InvKey = p.inv
		if !c.w.invalidate(c.pd, p.inv) {
			// §4.10: acknowledged without being counted, then the end.
			wc.Status = cq.StatusRemoteInvalid
			c.received(wc)
			c.reply(reply{op: opAck, psn: (s.psn + mask24) & mask24, syndrome: synACK, msn: s.msn})
			c.fatal(cq.StatusFlushed)
			return
		}
	}
	if p.se {
		wc.Flags |= cq.Solicited
	}
	s.msn = (s.msn + 1) & mask24
	c.received(wc)
}

func (w *world) invalidate(pd int, rkey uint32) bool {
	r := w.byKey[rkey]
	if r == nil || !r.remote || r.pd != pd || r.access&mr.RemoteInvalidate == 0 {
		return false
	}
	r.remote = false
	return true
}

// executed acknowledges a packet of a message if it asks for that (§4.12).
func (c *conn) executed(p *packet) {
	if c.failed {
		return
	}
	s := &c.resp
	s.done = append(s.done, ack{(s.psn + mask24) & mask24, s.msn})
	if p.ackReq {
		s.owe()
	}
}

// fault answers the expected packet with a fatal NAK (§4.3, §4.14); held is the
// status of the receive in progress.
func (c *conn) fault(code byte, held cq.Status) {
	c.reply(reply{op: opAck, psn: c.resp.psn, syndrome: code, msn: c.resp.msn})
	c.want.fatalSent++
	c.fatal(held)
}

// fatal is the error state entered because of what the peer asked for.
func (c *conn) fatal(held cq.Status) {
	c.event(qp.EventQPFatal)
	c.fail(held, cq.StatusFlushed)
}
