package wr

import (
	"encoding/binary"

	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
)

// Out is one packet to send: its headers, and where its payload lies. Or it is a run
// of them, see [Batch.AddRun].
type Out struct {
	hdr    [roce.MaxHeaderLen]byte
	hdrLen uint8
	// Pad is the number of zero bytes after the payload, 0..3.
	Pad uint8
	// lo and hi delimit the packet's spans in the batch.
	lo, hi int32
	// Len is the payload's length in bytes, in a run that of each packet.
	Len int32
	// Run is the number of packets.
	Run int32
	// Inline, if not nil, is the payload; otherwise it lies in the spans. It is
	// valid until the queue pair's lock is released.
	Inline []byte
	// Token goes to the engine's Fetched once the spans have been read. 0: no spans. In
	// a run it is the first packet's, see TokenOf; when several have been read at once,
	// one of theirs is enough.
	Token uint64
	// Step is by how much tokens grow from packet to packet of a run.
	Step uint64
	// To is where a datagram goes, valid as Inline is; nil on a connection.
	To *Destination
}

// Header returns BTH and extension headers, valid until the batch is reset.
func (o *Out) Header() []byte { return o.hdr[:o.hdrLen] }

// PutHeader writes BTH and extension headers of packet k of a run to the start of b.
func (o *Out) PutHeader(b []byte, k int) {
	if o.Run == 1 {
		copy(b, o.Header())
		return
	}
	be := binary.BigEndian
	word := be.Uint32(o.hdr[psnAt:])
	be.PutUint64(b, be.Uint64(o.hdr[:]))
	be.PutUint32(b[psnAt:], word&^uint32(roce.PSNMask)|(word+uint32(k))&uint32(roce.PSNMask))
}

// TokenOf returns the token of packet k of a run.
func (o *Out) TokenOf(k int) uint64 { return o.Token + uint64(k)*o.Step }

// psnAt is where AckReq and PSN stand in the BTH.
const psnAt = 8

// Size returns the packet's length from BTH to ICRC, in a run that of each.
func (o *Out) Size() int { return int(o.hdrLen) + int(o.Len) + int(o.Pad) + roce.ICRCLen }

// Batch collects packets to send. The caller owns it and resets it between
// drains; its slices are reused.
type Batch struct {
	// Runs says that whoever drains takes runs.
	Runs bool

	outs    []Out
	spans   []mr.Span
	limit   int
	packets int
	bytes   int
	max     int

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
	b.outs, b.spans, b.packets, b.bytes = b.outs[:0], b.spans[:0], 0, 0
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
	return b.bounded && (b.allowed == 0 || b.packets+1 >= b.limit || b.bytes+2*maxPacket > b.max)
}

// RunRoom returns how many packets of size bytes on the wire may be added so that none
// is Ending, as requests of that weight. Responses have none.
func (b *Batch) RunRoom(size int, cost uint64) uint64 {
	n := min(b.limit-1-b.packets, (b.max-2*maxPacket-b.bytes)/size+1)
	if n <= 0 || b.bytes+2*maxPacket > b.max {
		return 0
	}
	if !b.bounded || cost == 0 {
		return uint64(n)
	}
	return min(uint64(n), (max(b.allowed, 1)-1)/cost)
}

// Scratch is where the headers of the next packet may be put together before Add,
// so that each of many connections needs no place of its own. What it holds is
// left from the last one.
func (b *Batch) Scratch() *roce.Packet { return &b.scratch }

// Len returns the number of packets, a run counting as one.
func (b *Batch) Len() int { return len(b.outs) }

// At returns packet or run i, valid until the batch is reset.
func (b *Batch) At(i int) *Out { return &b.outs[i] }

// Spans returns where the payload of o lies.
func (b *Batch) Spans(o *Out) []mr.Span { return b.spans[o.lo:o.hi] }

// Part returns where the payload of the n packets of a run from packet k on lies.
func (b *Batch) Part(o *Out, k, n int) mr.Span {
	return b.spans[o.lo].Sub(uint32(k)*uint32(o.Len), uint32(n)*uint32(o.Len))
}

// Room reports whether another packet of any size fits.
func (b *Batch) Room() bool {
	return b.packets < b.limit && b.bytes+maxPacket <= b.max
}

// maxPacket is the largest packet: 4096 bytes of payload and its headers.
const maxPacket = 4096 + roce.MaxHeaderLen + roce.ICRCLen

// Add appends a packet with the headers of p and n payload bytes. There must be
// room.
func (b *Batch) Add(p *roce.Packet, n int) *Out { return b.AddRun(p, n, 1) }

// AddRun appends run packets with consecutive PSNs, which are alike but for that: p
// is the first of them, n a multiple of 4, the payload lies in one span, packet after
// packet, and there is no header but the BTH. The caller has asked RunRoom. A run of
// one is any packet.
func (b *Batch) AddRun(p *roce.Packet, n, run int) *Out {
	p.Pad = uint8(-n & 3)
	b.outs = b.outs[:len(b.outs)+1]
	o := &b.outs[len(b.outs)-1]
	o.hdrLen = uint8(len(p.AppendHeader(o.hdr[:0])))
	o.Pad, o.Len, o.Run, o.Inline, o.Token, o.Step, o.To = p.Pad, int32(n), int32(run), nil, 0, 0, nil
	o.lo = int32(len(b.spans))
	o.hi = o.lo
	b.packets += run
	b.bytes += run * o.Size()
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

// Contiguous returns how many bytes lie in one span from byte off of the concatenation
// of spans on.
func Contiguous(spans []mr.Span, off uint64) uint64 {
	for i := range spans {
		l := uint64(spans[i].Len)
		if off < l {
			return l - off
		}
		off -= l
	}
	return 0
}

// SpanBytes is the number of bytes in spans.
func SpanBytes(spans []mr.Span) uint64 {
	var n uint64
	for i := range spans {
		n += uint64(spans[i].Len)
	}
	return n
}
