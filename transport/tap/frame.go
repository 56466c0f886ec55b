package tap

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"

	"github.com/gohixl/hixl/roce"
)

const (
	ethLen   = 14
	ipv4Len  = 20
	ipv6Len  = 40
	udpLen   = 8
	protoUDP = 17
	// knownTTL is what Linux sends; a socket does not show another.
	knownTTL = 64

	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
)

// packet is one packet with what is known of its headers.
type packet struct {
	src, dst netip.Addr
	srcPort  uint16
	tos, ttl uint8
	id, frag uint16
	data     []byte
}

// frameLen is the length of the packet as an Ethernet frame.
func (p *packet) frameLen() int {
	if p.src.Is4() {
		return ethLen + ipv4Len + udpLen + len(p.data)
	}
	return ethLen + ipv6Len + udpLen + len(p.data)
}

// appendFrame appends the frame.
func (p *packet) appendFrame(b []byte) []byte {
	b = appendMAC(appendMAC(b, p.dst), p.src)
	length := uint16(udpLen + len(p.data))
	if p.src.Is4() {
		b = binary.BigEndian.AppendUint16(b, etherIPv4)
		ip := roce.IPv4{
			TOS: p.tos, TotalLen: ipv4Len + length, ID: p.id, Frag: p.frag,
			TTL: p.ttl, Protocol: protoUDP, Src: p.src, Dst: p.dst,
		}
		b = ip.Append(b)
	} else {
		b = binary.BigEndian.AppendUint16(b, etherIPv6)
		ip := roce.IPv6{
			TrafficClass: p.tos, PayloadLen: length, NextHeader: protoUDP, HopLimit: p.ttl, Src: p.src, Dst: p.dst,
		}
		b = ip.Append(b)
	}
	at := len(b)
	udp := roce.UDP{SrcPort: p.srcPort, DstPort: roce.Port, Len: length}
	b = append(udp.Append(b), p.data...)
	// A socket sends with a checksum, and Wireshark calls none over IPv6 an error.
	binary.BigEndian.PutUint16(b[at+6:], roce.UDPChecksum(p.src, p.dst, b[at:]))
	return b
}

// appendMAC makes an Ethernet address: locally administered, the rest the IPv4
// address or a hash of the IPv6 one.
func appendMAC(b []byte, a netip.Addr) []byte {
	if a.IsMulticast() {
		return append(b, 0x01, 0x00, 0x5e, 0, 0, 1)
	}
	if a.Is4() {
		v := a.As4()
		return append(b, 0x02, 0x00, v[0], v[1], v[2], v[3])
	}
	v := a.As16()
	return binary.BigEndian.AppendUint32(append(b, 0x02, 0x06), crc32.ChecksumIEEE(v[:]))
}
