package hostiletest

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
)

// read is §4.8.
func (c *conn) read(p *packet) {
	s, n := &c.resp, uint32(1)
	if p.length > 0 {
		n = (p.length + uint32(c.mtu) - 1) / uint32(c.mtu)
		if _, _, ok := c.w.reach(c.pd, p.rkey, p.va, uint64(p.length), mr.RemoteRead); !ok {
			c.fault(nakAccess, cq.StatusLocalAccess)
			return
		}
	}
	if s.unsaid >= s.depth {
		c.fault(nakInvalid, cq.StatusLocalQPOperation)
		return
	}
	s.msn = (s.msn + 1) & mask24
	r := resource{op: p.op, psn: s.psn, n: n, va: p.va, rkey: p.rkey, length: p.length, msn: s.msn}
	c.save(r)
	c.answerRead(&r, 0, false)
}

// answerRead sends the answer to a READ from packet from on.
func (c *conn) answerRead(r *resource, from uint32, again bool) {
	mtu := uint64(c.mtu)
	c.w.reader = c
	for i := from; i < r.n; i++ {
		a := reply{op: opReadMiddle, psn: (r.psn + i) & mask24, syndrome: synACK, msn: r.msn, again: again}
		switch first, last := i == from, i+1 == r.n; {
		case first && last:
			a.op = opReadOnly
		case first:
			a.op = opReadFirst
		case last:
			a.op = opReadLast
		}
		if off := uint64(i) * mtu; r.length > 0 {
			n := min(mtu, uint64(r.length)-off)
			reg, at, _ := c.w.reach(c.pd, r.rkey, r.va, uint64(r.length), mr.RemoteRead)
			c.touches(reg.mem.late != nil)
			a.payload = append([]byte{}, reg.at(at+off, n)...)
		}
		c.reply(a)
	}
}

// save keeps a READ or atomic for duplicates and moves on.
func (c *conn) save(r resource) {
	s := &c.resp
	s.unsaid++
	s.saved = append(s.saved, r)
	if len(s.saved) > s.depth {
		s.saved = s.saved[1:]
	}
	s.psn = (s.psn + r.n) & mask24
	s.done = append(s.done, ack{(s.psn + mask24) & mask24, s.msn})
	s.owed = false // its answer tells of everything before it
}

// atomic is §4.9, and ATOMIC WRITE (§6.1).
func (c *conn) atomic(p *packet) {
	s, need := &c.resp, mr.RemoteAtomic
	if p.op == opAtomicWrite {
		need = mr.RemoteWrite
	}
	if p.va%8 != 0 || p.op == opAtomicWrite && p.length != 8 {
		c.fault(nakInvalid, cq.StatusLocalQPOperation)
		return
	}
	r, at, ok := c.w.reach(c.pd, p.rkey, p.va, 8, need)
	if !ok {
		c.fault(nakAccess, cq.StatusLocalAccess)
		return
	}
	if s.unsaid >= s.depth {
		c.fault(nakInvalid, cq.StatusLocalQPOperation)
		return
	}
	c.touches(r.mem.late != nil)
	original := r.word(at)
	switch {
	case p.op == opAtomicWrite:
		copy(r.at(at, 8), p.payload)
	case p.op == opFetchAdd:
		r.setWord(at, original+p.swap)
	case original == p.compare:
		r.setWord(at, p.swap)
	}
	s.msn = (s.msn + 1) & mask24
	res := resource{op: p.op, psn: s.psn, n: 1, msn: s.msn, original: original}
	c.save(res)
	c.answerAtomic(&res, false)
}

func (c *conn) answerAtomic(r *resource, again bool) {
	a := reply{op: opAtomicAck, psn: r.psn, syndrome: synACK, msn: r.msn, original: r.original, again: again}
	if r.op == opAtomicWrite {
		a.op, a.original = opReadOnly, 0
	}
	c.reply(a)
}

// duplicate is §4.4. It never executes and never asks again.
func (c *conn) duplicate(p *packet) {
	s, k := &c.resp, kindOf(p.op)
	c.want.duplicates++
	if k.message() {
		if p.ackReq || k.last {
			s.owe()
			s.done = append(s.done, ack{s.owedFor, s.msn})
		}
		return
	}
	for i := range s.saved {
		r := &s.saved[i]
		off := (p.psn - r.psn) & mask24
		if off >= r.n {
			continue
		}
		if r.op != p.op {
			return
		}
		if p.op != opRead {
			c.want.atomicsReplayed++
			c.answerAtomic(r, true)
			return
		}
		c.readAgain(r, p, off)
		return
	}
}

// readAgain answers a READ that asks for the end of an older one.
func (c *conn) readAgain(r *resource, p *packet, off uint32) {
	skip := uint64(off) * uint64(c.mtu)
	if skip > uint64(r.length) || p.va != r.va+skip || uint64(p.length) != uint64(r.length)-skip || p.rkey != r.rkey {
		return
	}
	if _, _, ok := c.w.reach(c.pd, r.rkey, r.va, uint64(r.length), mr.RemoteRead); !ok && r.length > 0 {
		// The memory is gone; requests after it may have been executed already,
		// and what was still to be said of them is not said.
		for i := range c.replies {
			c.replies[i].again = true
		}
		c.reply(reply{op: opAck, psn: p.psn, syndrome: nakAccess, msn: c.resp.msn})
		c.want.fatalSent++
		c.fatal(cq.StatusFlushed)
		return
	}
	c.want.readsReplayed++
	c.answerRead(r, off, true)
}
