package xdp

import "github.com/gohixl/hixl/transport"

// Lanes is the number of queues.
func (c *Conn) Lanes() int { return len(c.queues) }

// Lane is the queue by which packets with that source port leave.
func (c *Conn) Lane(srcPort uint16) int { return int(c.SourcePort(srcPort)) % len(c.queues) }

// Lend lends slots of a queue, while more than half of them are free: who writes
// from memory of his own needs some as well.
func (c *Conn) Lend(lane int, frames []transport.Frame) int {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.closed.Load() || lane < 0 || lane >= len(c.queues) {
		return 0
	}
	return c.queues[lane].lend(frames)
}

func (q *queue) lend(frames []transport.Frame) int {
	q.txMu.Lock()
	defer q.txMu.Unlock()
	if len(q.free) < q.mem.tx/2+len(frames) {
		q.reap()
	}
	n := max(min(len(frames), len(q.free)-q.mem.tx/2), 0)
	for i := range frames[:n] {
		last := len(q.free) - 1
		slot := q.free[last]
		q.free = q.free[:last]
		q.loaned[slot] = true
		from := q.slotAt(slot) + headroom
		to := q.slotAt(slot) + q.mem.slot
		frames[i] = transport.Frame{Buf: q.mem.buf[from:to:to], Lease: uint64(q.id*q.mem.tx) + uint64(slot) + 1}
	}
	if n > 0 {
		q.mem.lend(n)
	}
	return n
}

// TakeBack takes slots back.
func (c *Conn) TakeBack(frames []transport.Frame) {
	c.life.RLock()
	defer c.life.RUnlock()
	for i := range frames {
		if q, slot := c.frame(frames[i].Lease); q != nil {
			q.txMu.Lock()
			if q.loaned[slot] {
				q.returned(slot)
				q.free = append(q.free, slot)
			}
			q.txMu.Unlock()
		}
		frames[i] = transport.Frame{}
	}
}

// frame finds what a lease is for, nil for what none was.
func (c *Conn) frame(lease uint64) (*queue, uint32) {
	number := lease - 1
	if lease == 0 || number >= uint64(len(c.queues)*c.mem.tx) {
		return nil, 0
	}
	return c.queues[number/uint64(c.mem.tx)], uint32(number % uint64(c.mem.tx))
}

// returned notes that a slot is not lent any more. Locked.
func (q *queue) returned(slot uint32) {
	q.loaned[slot] = false
	q.mem.lend(-1)
}

// leased returns the slot in which the packet was built, if it was. Locked.
func (q *queue) leased(t *transport.Tx) (uint32, bool) {
	_, slot := q.c.frame(t.Lease)
	if t.Lease == 0 || !q.loaned[slot] || &t.Data[0] != &q.mem.buf[q.slotAt(slot)+headroom] {
		return 0, false
	}
	return slot, true
}

// fill returns a slot with the packet in it, the one where it was built or one into
// which it is copied. Locked.
func (q *queue) fill(t *transport.Tx) (uint32, bool) {
	if slot, ok := q.leased(t); ok {
		if !q.ringRoom() {
			return 0, false
		}
		q.returned(slot)
		return slot, true
	}
	slot, ok := q.slot()
	if ok {
		copy(q.mem.buf[q.slotAt(slot)+headroom:], t.Data)
	}
	return slot, ok
}

// settled frees the slot of a packet that was dealt with and not sent. Locked.
func (q *queue) settled(t *transport.Tx) {
	if slot, ok := q.leased(t); ok {
		q.returned(slot)
		q.free = append(q.free, slot)
	}
}
