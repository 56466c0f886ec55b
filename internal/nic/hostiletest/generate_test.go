package hostiletest

import (
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// draft is a packet in the making: fields that can be changed, then bytes.
type draft struct {
	p     roce.Packet
	about string
	right bool // as an honest peer would send it next
}

// target chooses a connection, mostly one that still works.
func (w *world) target() *conn {
	for range 5 {
		if c := pick(w.rng, w.conns...); !c.failed || w.rng.IntN(20) == 0 {
			return c
		}
	}
	return pick(w.rng, w.conns...)
}

func (w *world) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(w.rng.Uint32())
	}
	return b
}

func (c *conn) draft(op byte, psn uint32, payload int) *draft {
	d := &draft{p: roce.Packet{
		Opcode: roce.Opcode(op), Mig: true, PKey: 0xFFFF, DestQP: roce.QPN(c.qpn), PSN: roce.PSN(psn & mask24),
	}}
	d.p.SetPayload(c.w.bytes(payload))
	return d
}

// nextRequest is a request with the expected PSN that fits what came before.
func (c *conn) nextRequest() *draft {
	w, s := c.w, &c.resp
	var d *draft
	switch {
	case s.in.send:
		d = c.goOnSending()
	case s.in.write:
		d = c.goOnWriting()
	default:
		d = c.newRequest()
	}
	d.right = true
	d.p.AckReq = w.rng.IntN(3) > 0
	d.p.SE = w.rng.IntN(4) == 0
	d.p.Imm = w.rng.Uint32()
	d.p.InvKey = c.someKey()
	if r := w.named["revocable"]; r.remote && w.rng.IntN(4) > 0 {
		d.p.InvKey = r.rkey
	}
	return d
}

func (c *conn) goOnSending() *draft {
	s, rng := &c.resp, c.w.rng
	left := int(s.recv.capacity() - s.got)
	if left >= c.mtu && rng.IntN(2) == 0 {
		return c.draft(opSendMiddle, s.psn, c.mtu)
	}
	n := 1 + rng.IntN(c.mtu)
	if left > 0 {
		n = 1 + rng.IntN(min(left, c.mtu))
	}
	return c.draft(pick[byte](rng, opSendLast, opSendLastImm, opSendLastInv), s.psn, n)
}

func (c *conn) goOnWriting() *draft {
	s, rng := &c.resp, c.w.rng
	left := int(s.length - s.got)
	if left > c.mtu {
		return c.draft(opWriteMiddle, s.psn, c.mtu)
	}
	return c.draft(pick[byte](rng, opWriteLast, opWriteLastImm), s.psn, left)
}

// newRequest begins a message, or is a READ or atomic.
func (c *conn) newRequest() *draft {
	w, s, rng := c.w, &c.resp, c.w.rng
	n := w.size(c.mtu)
	var d *draft
	switch rng.IntN(8) {
	case 0, 1:
		if n > c.mtu {
			return c.draft(opSendFirst, s.psn, c.mtu)
		}
		return c.draft(pick[byte](rng, opSendOnly, opSendOnlyImm, opSendOnlyInv), s.psn, n)
	case 2, 3, 4:
		d = c.draft(pick[byte](rng, opWriteOnly, opWriteOnlyImm), s.psn, min(n, c.mtu))
		if n > c.mtu {
			d.p.Opcode = opWriteFirst
		}
	case 5:
		d = c.draft(opRead, s.psn, 0)
	case 6:
		d = c.draft(pick[byte](rng, opCmpSwap, opFetchAdd), s.psn, 0)
		n = 8
	default:
		d = c.draft(opAtomicWrite, s.psn, 8)
		n = 8
		if rng.IntN(8) == 0 {
			d = c.draft(opFlush, s.psn, 0)
		}
	}
	c.aim(d, n)
	return d
}

// aim gives a request for n bytes of memory an address, mostly a good one.
func (c *conn) aim(d *draft, n int) {
	w, rng := c.w, c.w.rng
	r := w.named[pick(rng, "open", "open", "open", "open", "open", "late", "edge", "odd", "revocable", "twin", "readable", "late", "open", "stale", "foreign", "shut")]
	off := uint64(0)
	if size := r.size; uint64(n) <= size {
		off = rng.Uint64N(size - uint64(n) + 1)
		if n == 8 {
			off = min((off+7)&^7-r.base%8, size-8)
		}
	}
	d.p.RETH = roce.RETH{VA: r.base + off, RKey: r.rkey, Len: uint32(n)}
	d.p.Atomic = roce.AtomicETH{VA: r.base + off, RKey: r.rkey, SwapAdd: rng.Uint64(), Compare: rng.Uint64()}
	if reg, at, ok := w.reach(c.pd, r.rkey, r.base+off, 8, 0); ok && rng.IntN(2) == 0 {
		d.p.Atomic.Compare = reg.word(at) // so that it is swapped
	}
}

// someKey is a key that exists, or nearly.
func (c *conn) someKey() uint32 {
	r := pick(c.w.rng, c.w.regions...)
	switch c.w.rng.IntN(8) {
	case 0:
		return r.rkey + 1
	case 1:
		if r.real != nil {
			return r.real.LKey()
		}
	case 2:
		return pick(c.w.rng, 0, 0xFFFFFFFF, c.w.rng.Uint32())
	}
	return r.rkey
}

// again is an older request once more, or the end of an older READ.
func (c *conn) repeat() *draft {
	rng := c.w.rng
	if len(c.past) == 0 {
		return c.nextRequest()
	}
	d := pick(rng, c.past...)
	d.about = "once more"
	if n := d.p.RETH.Len; d.p.Opcode == opRead && n > uint32(c.mtu) && rng.IntN(2) == 0 {
		k := uint32(1 + rng.IntN(int(n-1)/c.mtu))
		d.p.PSN = (d.p.PSN + roce.PSN(k)) & mask24
		d.p.RETH.VA += uint64(k) * uint64(c.mtu)
		d.p.RETH.Len -= k * uint32(c.mtu)
		d.about = "the end of a READ once more"
	}
	return &d
}

// nextResponse is a response to what the NIC has open, right if there is any.
func (c *conn) nextResponse() *draft {
	s, rng := &c.req, c.w.rng
	if len(s.open) == 0 || s.sent == s.una {
		d := c.draft(pick[byte](rng, opAck, opAck, opReadOnly, opReadFirst, opReadMiddle, opAtomicAck), s.psn(s.una)-uint32(rng.IntN(3)), 0)
		d.p.AETH.Syndrome = roce.Syndrome(synACK)
		return d
	}
	r := &s.open[0]
	psn := s.psn(s.una)
	var d *draft
	switch {
	case r.Op == wr.OpRead:
		i := s.una - r.first
		n := int(min(r.length-i*uint64(c.mtu), uint64(c.mtu)))
		begins, ends := i == 0 || s.una == s.again && rng.IntN(2) == 0, i+1 == r.n
		op := byte(opReadMiddle)
		switch {
		case begins && ends:
			op = opReadOnly
		case begins:
			op = opReadFirst
		case ends:
			op = opReadLast
		}
		if rng.IntN(12) == 0 { // in the wrong place
			op = pick[byte](rng, opReadFirst, opReadMiddle, opReadLast, opReadOnly)
		}
		d = c.draft(op, psn, n)
	case r.Op == wr.OpAtomicWrite:
		d = c.draft(opReadOnly, psn, 0)
	case r.answered():
		d = c.draft(opAtomicAck, psn, 0)
	default:
		ahead := uint64(0)
		for i := 0; i < len(s.open) && !s.open[i].answered(); i++ {
			ahead = s.open[i].end() - 1 - s.una
			if rng.IntN(2) == 0 {
				break
			}
		}
		d = c.draft(opAck, psn+uint32(rng.Uint64N(min(ahead, s.sent-s.una-1)+1)), 0)
	}
	d.right = true
	d.p.AtomicAck = rng.Uint64()
	d.p.AETH = roce.AETH{Syndrome: roce.Syndrome(synACK), MSN: rng.Uint32() & mask24}
	if rng.IntN(5) == 0 { // a NAK for something that is open
		d = c.draft(opAck, psn+uint32(rng.Uint64N(s.sent-s.una)), 0)
		d.p.AETH = roce.AETH{
			Syndrome: roce.Syndrome(pick(rng, nakSequence, nakSequence, nakSequence, synRNR+1, synRNR, synRNR+31, nakInvalid, nakAccess, nakOperational, 0x64)),
			MSN:      rng.Uint32() & mask24,
		}
	}
	return d
}
