package sim

import (
	"encoding/binary"
	"net/netip"

	"github.com/gohixl/hixl/transport"
)

const (
	ipv4Len = 20
	ipv6Len = 40
	udpLen  = 8
	dontFrg = 0x4000
	// The kernel keeps fragments for reassembly; they never reach a receiver.
	fragment = 0x3fff // more fragments, offset
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
// (§1.4), and the IP header checksum is left 0: see Link.Corrupt.
func (f *frame) build(src, dst netip.Addr, srcPort uint16, tos uint8, id uint16, data []byte) {
	be := binary.BigEndian
	f.src, f.dst = src, dst
	b := f.b[:0]
	if src.Is4() {
		s, d := src.As4(), dst.As4()
		b = append(b, 0x45, tos)
		b = be.AppendUint16(b, uint16(ipv4Len+udpLen+len(data)))
		b = be.AppendUint16(b, id)
		b = be.AppendUint16(b, dontFrg)
		b = append(b, hopLimit, protoUDP, 0, 0)
		b = append(append(b, s[:]...), d[:]...)
	} else {
		s, d := src.As16(), dst.As16()
		b = append(b, 0x60|tos>>4, tos<<4, 0, 0)
		b = be.AppendUint16(b, uint16(udpLen+len(data)))
		b = append(b, protoUDP, hopLimit)
		b = append(append(b, s[:]...), d[:]...)
	}
	b = be.AppendUint16(b, srcPort)
	b = be.AppendUint16(b, transport.Port)
	b = be.AppendUint16(b, uint16(udpLen+len(data)))
	b = append(b, 0, 0)
	f.b = append(b, data...)
}

// parse reads the headers again as they are now and says whether a host would
// take the packet as one for UDP port 4791.
func (f *frame) parse() bool {
	be := binary.BigEndian
	var udp []byte
	switch b := f.b; {
	case b[0]>>4 == 4:
		if b[0] != 0x45 || int(be.Uint16(b[2:])) != len(b) || b[9] != protoUDP {
			return false
		}
		f.tos, f.ttl = b[1], b[8]
		f.id, f.frag = be.Uint16(b[4:]), be.Uint16(b[6:])
		if f.frag&fragment != 0 || f.ttl == 0 {
			return false
		}
		f.src, f.dst = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
		udp = b[ipv4Len:]
	case b[0]>>4 == 6 && len(b) >= ipv6Len+udpLen:
		if ipv6Len+int(be.Uint16(b[4:])) != len(b) || b[6] != protoUDP || b[7] == 0 {
			return false
		}
		f.tos, f.ttl = b[0]<<4|b[1]>>4, b[7]
		f.src, f.dst = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
		udp = b[ipv6Len:]
	default:
		return false
	}
	f.srcPort = be.Uint16(udp)
	return be.Uint16(udp[2:]) == transport.Port &&
		int(be.Uint16(udp[4:])) == len(udp) && be.Uint16(udp[6:]) == 0
}

// payload is the UDP payload of a frame that parsed.
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
