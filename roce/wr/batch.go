package wr

import (
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
)

// Out is one packet to send: its headers, and where its payload lies.
type Out struct {
	hdr    [roce.MaxHeaderLen]byte
	hdrLen uint8
	// Pad is the number of zero bytes after the payload, 0..3.
	Pad uint8
	// lo and hi delimit the packet's spans in the batch.
	lo, hi int32
	// Len is the payload's length in bytes.
	Len int32
	// Inline, if not nil, is the payload; otherwise it lies in the spans. It is
	// valid until the queue pair's lock is released.
	Inline []byte
	// Token goes to the engine's Fetched once the spans have been read. 0: no spans.
	Token uint64
	// To is where a datagram goes, valid as Inline is; nil on a connection.
	To *Destination
}

// Header returns BTH and extension headers, valid until the batch is reset.
func (o *Out) Header() []byte { return o.hdr[:o.hdrLen] }

// Size returns the packet's length from BTH to ICRC.
func (o *Out) Size() int { return int(o.hdrLen) + int(o.Len) + int(o.Pad) + roce.ICRCLen }

// Batch collects packets to send. The caller owns it and resets it between
// drains; its slices are reused.
type Batch struct {
	outs  []Out
	spans []mr.Span
	limit int
	bytes int
	max   int

	scratch roce.Packet

	bounded bool // allowed counts
	short   bool
	allowed uint64
}

// NewBatch returns a batch of up to packets packets and maxBytes bytes.
func NewBatch(packets, maxBytes int) *Batch {
	return &Batch{outs: make([]Out, 0, packets), spans: make([]mr.Span, 0, packets), limit: packets, max: maxBytes}
}

// Reset empties the batch and drops its references to regions.
func (b *Batch) Reset() {
	clear(b.spans)
	b.outs, b.spans, b.bytes = b.outs[:0], b.spans[:0], 0
	b.bounded, b.short = false, false
}

// Allow bounds what the requests of a reliable connection that are added until the
// next Reset may weigh, in the measure of [PacketCost]; the last may exceed it.
// Responses, and a packet that only asks for an answer, count for nothing.
func (b *Batch) Allow(cost uint64) { b.bounded, b.short, b.allowed = true, false, cost }

// Spend takes the weight of a request out of what is allowed. It reports false,
// and takes nothing, when nothing is left.
func (b *Batch) Spend(cost uint64) bool {
	if !b.bounded {
		return true
	}
	if b.allowed == 0 {
		b.short = true
		return false
	}
	b.allowed -= min(cost, b.allowed)
	return true
}

// Short reports whether a request stayed behind because no more was allowed.
func (b *Batch) Short() bool { return b.short }

// Ending reports whether the next packet may be the last for some time, though not
// the last of its message: then it had better ask for an acknowledgement.
func (b *Batch) Ending() bool {
	return b.bounded && (b.allowed == 0 || len(b.outs)+1 >= b.limit || b.bytes+2*maxPacket > b.max)
}

// Scratch is where the headers of the next packet may be put together before Add,
// so that each of many connections needs no place of its own. What it holds is
// left from the last one.
func (b *Batch) Scratch() *roce.Packet { return &b.scratch }

// Len returns the number of packets.
func (b *Batch) Len() int { return len(b.outs) }

// At returns packet i, valid until the batch is reset.
func (b *Batch) At(i int) *Out { return &b.outs[i] }

// Spans returns where the payload of o lies.
func (b *Batch) Spans(o *Out) []mr.Span { return b.spans[o.lo:o.hi] }

// Room reports whether another packet of any size fits.
func (b *Batch) Room() bool {
	return len(b.outs) < b.limit && b.bytes+maxPacket <= b.max
}

// maxPacket is the largest packet: 4096 bytes of payload and its headers.
const maxPacket = 4096 + roce.MaxHeaderLen + roce.ICRCLen

// Add appends a packet with the headers of p and n payload bytes. There must be
// room.
func (b *Batch) Add(p *roce.Packet, n int) *Out {
	p.Pad = uint8(-n & 3)
	b.outs = b.outs[:len(b.outs)+1]
	o := &b.outs[len(b.outs)-1]
	o.hdrLen = uint8(len(p.AppendHeader(o.hdr[:0])))
	o.Pad, o.Len, o.Inline, o.Token, o.To = p.Pad, int32(n), nil, 0, nil
	o.lo = int32(len(b.spans))
	o.hi = o.lo
	b.bytes += o.Size()
	return o
}

// Gather appends to packet o, the newest, the part [off, off+n) of spans.
func (b *Batch) Gather(o *Out, spans []mr.Span, off, n uint64) {
	b.spans = Slice(b.spans, spans, off, n)
	o.hi = int32(len(b.spans))
}

// Slice appends the part [off, off+n) of the concatenation of src to dst.
func Slice(dst, src []mr.Span, off, n uint64) []mr.Span {
	for _, s := range src {
		l := uint64(s.Len)
		if off >= l {
			off -= l
			continue
		}
		take := min(l-off, n)
		if take == 0 {
			break
		}
		s.Off, s.Len = s.Off+off, uint32(take)
		dst = append(dst, s)
		n -= take
		off = 0
	}
	return dst
}

// SpanBytes is the number of bytes in spans.
func SpanBytes(spans []mr.Span) uint64 {
	var n uint64
	for i := range spans {
		n += uint64(spans[i].Len)
	}
	return n
}
