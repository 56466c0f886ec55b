package xdp

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"github.com/gohixl/hixl/roce"
)

var be = binary.BigEndian

// Lengths of headers, in bytes.
const (
	etherLen = 14
	tagLen   = 4
	ipv4Len  = 20
	ipv6Len  = 40
	udpLen   = 8
	// headroom is what is kept free before a packet: room for the longest headers,
	// so that packets begin at a cache line.
	headroom = 128
)

const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86DD
	etherVLAN = 0x8100
	protoUDP  = 17
)

// template is the headers of frames on one path, all that is the same in each.
type template struct {
	head   [etherLen + tagLen + ipv6Len + udpLen]byte
	size   int    // of head
	ip     int    // where the IP header begins
	v6     bool   //
	sum    uint32 // of the constant words of the IPv4 header
	pseudo uint32 // of the constant words of the UDP pseudo-header
	full   bool   // compute the UDP checksum
	mtu    int    // of the path
}

// shape is what a template is made of.
type shape struct {
	src, dst       netip.Addr
	srcMAC, dstMAC [6]byte
	vlan           uint16 // VLAN id, with tagged
	tagged         bool
	hopLimit       uint8
	checksum       Checksum
	mtu            int
}

func newTemplate(s *shape) *template {
	t := &template{v6: s.src.Is6(), full: s.checksum == ChecksumFull, mtu: s.mtu}
	b := append(t.head[:0], s.dstMAC[:]...)
	b = append(b, s.srcMAC[:]...)
	if s.tagged {
		b = be.AppendUint16(b, etherVLAN)
		b = be.AppendUint16(b, s.vlan)
	}
	if t.v6 {
		b = be.AppendUint16(b, etherIPv6)
		t.ip = len(b)
		h := roce.IPv6{NextHeader: protoUDP, HopLimit: s.hopLimit, Src: s.src, Dst: s.dst}
		b = h.Append(b)
	} else {
		b = be.AppendUint16(b, etherIPv4)
		t.ip = len(b)
		h := roce.IPv4{Frag: roce.DontFragment, TTL: s.hopLimit, Protocol: protoUDP, Src: s.src, Dst: s.dst}
		b = h.Append(b)
		be.PutUint16(b[t.ip+10:], 0)
		t.sum = sumWords(b[t.ip:])
	}
	b = be.AppendUint16(b, 0)
	b = be.AppendUint16(b, roce.Port)
	b = be.AppendUint32(b, 0)
	t.size = len(b)
	src, dst := s.src.AsSlice(), s.dst.AsSlice()
	t.pseudo = sumWords(src) + sumWords(dst) + protoUDP
	return t
}

// packetLen is the size of the IP packet around n bytes.
func (t *template) packetLen(n int) int { return t.size - t.ip + n }

// put writes the headers of a packet of n bytes to the end of b[:at], where
// b[at:at+n] is the packet. It returns where the frame begins.
func (t *template) put(b []byte, at, n int, id, srcPort uint16, tos uint8) int {
	start := at - t.size
	h := b[start:at:at]
	copy(h, t.head[:t.size])
	ip := h[t.ip:]
	var udp []byte
	if t.v6 {
		be.PutUint32(ip, 6<<28|uint32(tos)<<20)
		be.PutUint16(ip[4:], uint16(n+udpLen))
		udp = ip[ipv6Len:]
	} else {
		ip[1] = tos
		be.PutUint16(ip[2:], uint16(n+udpLen+ipv4Len))
		be.PutUint16(ip[4:], id)
		be.PutUint16(ip[10:], ^foldSum(t.sum+uint32(tos)+uint32(n+udpLen+ipv4Len)+uint32(id)))
		udp = ip[ipv4Len:]
	}
	be.PutUint16(udp, srcPort)
	be.PutUint16(udp[4:], uint16(n+udpLen))
	if t.full {
		s := t.pseudo + 2*uint32(n+udpLen) + uint32(srcPort) + roce.Port
		c := ^foldSum(s + uint32(sumBytes(b[at:at+n])))
		if c == 0 {
			c = 0xFFFF // 0 would say that there is none
		}
		be.PutUint16(udp[6:], c)
	}
	return start
}

// sumWords adds the big-endian words of a short, even b.
func sumWords(b []byte) (s uint32) {
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(be.Uint16(b))
	}
	return s
}

// foldSum ends a ones' complement sum.
func foldSum(s uint32) uint16 {
	s = s&0xFFFF + s>>16
	return uint16(s + s>>16)
}

// sumBytes is the ones' complement sum of b in big-endian words, the last one
// filled up with a zero.
func sumBytes(b []byte) uint16 {
	var s, c uint64
	for len(b) >= 32 {
		s, c = bits.Add64(s, be.Uint64(b), c)
		s, c = bits.Add64(s, be.Uint64(b[8:]), c)
		s, c = bits.Add64(s, be.Uint64(b[16:]), c)
		s, c = bits.Add64(s, be.Uint64(b[24:]), c)
		b = b[32:]
	}
	for len(b) >= 8 {
		s, c = bits.Add64(s, be.Uint64(b), c)
		b = b[8:]
	}
	if len(b) > 0 {
		var w [8]byte
		copy(w[:], b)
		s, c = bits.Add64(s, be.Uint64(w[:]), c)
	}
	s, c = bits.Add64(s, 0, c)
	s += c
	s = s>>32 + s&0xFFFFFFFF
	s = s>>32 + s&0xFFFFFFFF
	return foldSum(uint32(s>>16 + s&0xFFFF))
}
