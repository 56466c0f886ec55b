package sim

import (
	"net/netip"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
)

const (
	ipv4Len  = 20
	ipv6Len  = 40
	udpLen   = 8
	hopLimit = 64
	protoUDP = 17
)

// frame is one IP packet with room for any, and what was read from its headers.
type frame struct {
	b        []byte
	src, dst netip.Addr
	srcPort  uint16
	id, frag uint16
	tos, ttl uint8
	next     *frame // in the pool
}

// framePool keeps frames for reuse. Each keeps the largest buffer it ever had.
type framePool struct{ free *frame }

func (p *framePool) get() *frame {
	f := p.free
	if f == nil {
		return &frame{b: make([]byte, 0, DefaultMTU)}
	}
	p.free, f.next = f.next, nil
	f.b = f.b[:0]
	return f
}

func (p *framePool) put(f *frame) { f.next, p.free = p.free, f }

func (p *framePool) clone(f *frame) *frame {
	c := p.get()
	b := append(c.b, f.b...)
	*c = *f
	c.b, c.next = b, nil
	return c
}

// build makes the IP packet. The UDP checksum is 0, as RoCEv2 NICs send it
// (§1.4).
func (f *frame) build(src, dst netip.Addr, srcPort uint16, tos uint8, id uint16, data []byte) {
	f.src, f.dst = src, dst
	b := f.b[:0]
	length := uint16(udpLen + len(data))
	if src.Is4() {
		ip := roce.IPv4{
			TOS: tos, TotalLen: ipv4Len + length, ID: id, Frag: roce.DontFragment,
			TTL: hopLimit, Protocol: protoUDP, Src: src, Dst: dst,
		}
		b = ip.Append(b)
	} else {
		ip := roce.IPv6{
			TrafficClass: tos, PayloadLen: length, NextHeader: protoUDP, HopLimit: hopLimit, Src: src, Dst: dst,
		}
		b = ip.Append(b)
	}
	udp := roce.UDP{SrcPort: srcPort, DstPort: transport.Port, Len: length}
	f.b = append(udp.Append(b), data...)
}

// parse reads the headers again as they are now and says whether a host would
// take the packet as one for UDP port 4791. The IP header checksum counts as
// right: see Link.Corrupt.
func (f *frame) parse() bool {
	var h roce.Frame
	if roce.DecodeFrame(roce.LinkRaw, f.b, &h) != nil {
		return false
	}
	f.src, f.dst, f.srcPort = h.Src, h.Dst, h.SrcPort
	f.id, f.frag, f.tos, f.ttl = h.ID, h.Frag, h.TOS, h.TTL
	data := f.payload()
	checksum := f.b[len(f.b)-len(data)-2:]
	return len(h.Payload) == len(data) && h.TTL != 0 && checksum[0]|checksum[1] == 0
}

// payload is the UDP payload of a frame as it was built.
func (f *frame) payload() []byte {
	if f.b[0]>>4 == 4 {
		return f.b[ipv4Len+udpLen:]
	}
	return f.b[ipv6Len+udpLen:]
}

// markCE sets the ECN bits to CE if the sender said it understands ECN.
func (f *frame) markCE() bool {
	at, shift := 1, 0
	if f.b[0]>>4 == 6 {
		shift = 4
	}
	if f.b[at]>>shift&3 == 0 {
		return false
	}
	f.b[at] |= 3 << shift
	return true
}
