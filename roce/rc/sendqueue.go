package rc

import (
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
)

// packetCost is what a packet weighs in the window beyond its payload: headers,
// and the bookkeeping of a receiver's socket buffer.
const packetCost = 64

// wqe is a posted send work request. Its PSNs were assigned when it was posted
// and never change.
type wqe struct {
	id    uint64
	first uint64 // sequence number of its first packet
	base  uint64 // window cost of everything posted before it
	npsn  uint32
	// uncommitted counts placements of READ or atomic data that are not in
	// memory yet; the request completes only without them.
	uncommitted uint32
	length      uint32
	op          Op
	flags       Flags
	inline      bool
	spans       []mr.Span // backed by the queue's array
	data        []byte    // inline payload, backed by the queue's array

	raddr            uint64
	compare, swapAdd uint64
	rkey             uint32
	imm, inv         uint32
}

// end is the sequence number after the last packet.
func (w *wqe) end() uint64 { return w.first + uint64(w.npsn) }

// cost is the window cost of everything before packet i of the request.
func (w *wqe) cost(i uint64, mtu uint64) uint64 {
	return w.base + min(i*mtu, uint64(w.length)) + i*packetCost
}

// payload returns offset and length of packet i's part of the message.
func (w *wqe) payload(i uint64, mtu uint64) (off, n uint64) {
	off = min(i*mtu, uint64(w.length))
	return off, min(uint64(w.length)-off, mtu)
}

// sendQueue is the ring of posted work requests. Index i of a request never
// changes; the slot is i modulo the size.
type sendQueue struct {
	slots  []wqe
	spans  []mr.Span
	inline []byte
	mask   uint64
	limit  uint64
	sge    int

	head, tail uint64 // oldest incomplete, next to be posted
}

func (q *sendQueue) len() int { return int(q.tail - q.head) }

func (q *sendQueue) full() bool { return q.tail-q.head >= q.limit }

// at returns request i, which must be between head and tail.
func (q *sendQueue) at(i uint64) *wqe { return &q.slots[i&q.mask] }

// push takes the next slot and copies r into it. The rings are made here, at
// the first post: most queue pairs of a large fabric stay idle.
func (q *sendQueue) push(r *Request) *wqe {
	if q.slots == nil {
		n := uint64(1)
		for n < q.limit {
			n <<= 1
		}
		q.slots, q.mask = make([]wqe, n), n-1
		q.spans = make([]mr.Span, n*uint64(q.sge))
	}
	slot := q.tail & q.mask
	q.tail++
	w := &q.slots[slot]
	at := slot * uint64(q.sge)
	*w = wqe{
		id: r.ID, op: r.Op, flags: r.Flags, raddr: r.RemoteAddr, rkey: r.RKey,
		imm: r.Imm, inv: r.InvKey, compare: r.Compare, swapAdd: r.SwapAdd,
		spans: append(q.spans[at:at:at+uint64(q.sge)], r.Spans...),
	}
	if r.Flags&Inline != 0 || r.Op == OpAtomicWrite {
		w.inline = true
		w.data = append(q.inlineSlot(slot), r.Inline...)
	}
	return w
}

func (q *sendQueue) inlineSlot(slot uint64) []byte {
	if q.inline == nil {
		q.inline = make([]byte, len(q.slots)*MaxInline)
	}
	at := int(slot) * MaxInline
	return q.inline[at : at : at+MaxInline]
}

// pop forgets the oldest request and its regions.
func (q *sendQueue) pop() {
	clear(q.at(q.head).spans)
	q.head++
}

// packets is the number of PSNs a message of n bytes takes (§3.2).
func packets(n, mtu uint64) uint32 {
	if n == 0 {
		return 1
	}
	return uint32((n + mtu - 1) / mtu)
}

// wire is the 24 bits of a sequence number that a packet carries.
func wire(seq uint64) roce.PSN { return roce.PSN(seq & 0xFFFFFF) }

// extend returns the sequence number with the wire value p that lies nearest to
// ref, as a signed distance from it (§0).
func extend(ref uint64, p roce.PSN) int64 { return int64(p.Sub(wire(ref))) }
