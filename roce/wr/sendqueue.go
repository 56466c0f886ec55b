package wr

import "github.com/gohixl/hixl/mr"

// PacketCost is what a packet weighs in a window beyond its payload: headers,
// and the bookkeeping of a receiver's socket buffer.
const PacketCost = 64

// WQE is a posted send work request with the numbers that its engine gave it
// then; they never change.
type WQE struct {
	Request
	// First is the sequence number of its first packet, NPSN how many it takes.
	First uint64
	NPSN  uint32
	// Length is the message's length in bytes.
	Length uint32
	// Base is the window cost of everything posted before it.
	Base uint64
	// Busy counts placements of its data, or fetches, that are not finished;
	// the request completes only without them.
	Busy uint32
	// Discard says that nothing more of its answer goes into its memory.
	Discard bool
	// IsInline says that the payload is Inline, not in Spans.
	IsInline bool
}

// End is the sequence number after the last packet.
func (w *WQE) End() uint64 { return w.First + uint64(w.NPSN) }

// Cost is the window cost of everything before packet i of the request.
func (w *WQE) Cost(i, mtu uint64) uint64 {
	return w.Base + min(i*mtu, uint64(w.Length)) + i*PacketCost
}

// Payload returns offset and length of packet i's part of the message.
func (w *WQE) Payload(i, mtu uint64) (off, n uint64) {
	off = min(i*mtu, uint64(w.Length))
	return off, min(uint64(w.Length)-off, mtu)
}

// SendQueue is the ring of posted work requests. The index of a request never
// changes; its slot is the index modulo the size. Head ≤ index < Tail.
type SendQueue struct {
	slots  []WQE
	spans  []mr.Span
	inline []byte
	mask   uint64
	limit  uint64
	sge    int

	// Head is the oldest incomplete request, Tail the next to be posted.
	Head, Tail uint64
}

// Init sets the largest number of requests, and of spans of each.
func (q *SendQueue) Init(limit, sge int) {
	q.limit, q.sge = uint64(max(limit, 1)), sge
}

// Len is the number of requests in the queue.
func (q *SendQueue) Len() int { return int(q.Tail - q.Head) }

// Full reports whether Push would exceed the limit.
func (q *SendQueue) Full() bool { return q.Tail-q.Head >= q.limit }

// MaxSpans is the largest number of spans of a request.
func (q *SendQueue) MaxSpans() int { return q.sge }

// Has reports whether request i is in the queue.
func (q *SendQueue) Has(i uint64) bool { return i-q.Head < q.Tail-q.Head }

// At returns request i, which must be between Head and Tail.
func (q *SendQueue) At(i uint64) *WQE { return &q.slots[i&q.mask] }

// Push takes the next slot and copies r, which has been checked, into it. The
// rings grow as they fill: most queue pairs of a large fabric are idle.
func (q *SendQueue) Push(r *Request) *WQE {
	if q.Tail-q.Head == uint64(len(q.slots)) {
		q.grow()
	}
	slot := q.Tail & q.mask
	q.Tail++
	w := &q.slots[slot]
	*w = WQE{Request: *r}
	w.Spans = append(q.spanSlot(slot), r.Spans...)
	w.Inline = nil
	if _, w.IsInline = r.Length(); w.IsInline {
		w.Inline = append(q.inlineSlot(slot), r.Inline...)
	}
	return w
}

// Trim gives back the memory of an empty queue, which the next Push takes anew.
func (q *SendQueue) Trim() {
	if q.Len() == 0 {
		q.slots, q.spans, q.inline, q.mask = nil, nil, nil, 0
	}
}

// grow doubles the rings. What is sent from the old ones stays as it is: they are
// left to whoever has it.
func (q *SendQueue) grow() {
	was := *q
	n := max(1, 2*uint64(len(q.slots)))
	q.slots, q.mask = make([]WQE, n), n-1
	q.spans = make([]mr.Span, n*uint64(q.sge))
	q.inline = nil
	for i := q.Head; i < q.Tail; i++ {
		w := *was.At(i)
		slot := i & q.mask
		w.Spans = append(q.spanSlot(slot), w.Spans...)
		if w.IsInline {
			w.Inline = append(q.inlineSlot(slot), w.Inline...)
		}
		q.slots[slot] = w
	}
}

func (q *SendQueue) spanSlot(slot uint64) []mr.Span {
	at := slot * uint64(q.sge)
	return q.spans[at : at : at+uint64(q.sge)]
}

func (q *SendQueue) inlineSlot(slot uint64) []byte {
	if q.inline == nil {
		q.inline = make([]byte, len(q.slots)*MaxInline)
	}
	at := int(slot) * MaxInline
	return q.inline[at : at : at+MaxInline]
}

// Pop forgets the oldest request and its regions.
func (q *SendQueue) Pop() {
	clear(q.At(q.Head).Spans)
	q.Head++
}
