package roce

import (
	"encoding/binary"
	"net/netip"

	"github.com/gohixl/hixl/roce/internal/crc"
)

// Headers is what the ICRC covers outside the packet itself: the addresses and
// ports, and for IPv4 the identification and flags. Lengths follow from the
// packet; TOS, TTL, checksums and the IPv6 flow label are masked (§2.1). Src and
// Dst must be of one family; IPv4-mapped addresses count as IPv4.
type Headers struct {
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
	ID               uint16 // IPv4 identification
	Frag             uint16 // IPv4 flags and fragment offset: [DontFragment] on every packet we send or can check over a socket
}

// DontFragment is the only flag that RoCEv2 packets over IPv4 have set.
const DontFragment = 0x4000

const (
	ipv4Len = 20
	ipv6Len = 40
	udpLen  = 8

	// maxUDPPayload is what fits the IPv4 total length.
	maxUDPPayload = 1<<16 - 1 - ipv4Len - udpLen

	// prefixMax is what is masked and hashed apart from the packet's own bytes.
	prefixMax = ipv6Len + udpLen + BTHLen
)

// ICRC returns the invariant CRC of a packet, pkt being its bytes from the BTH
// to the pad. On the wire it stands least significant byte first.
func (h *Headers) ICRC(pkt []byte) uint32 {
	var prefix [prefixMax]byte
	n := h.putPrefix(prefix[:], h.ID, len(pkt)+ICRCLen)
	bth := copy(prefix[n:], pkt)
	if bth > 4 {
		prefix[n+4] = 0xFF // FECN, BECN and reserved bits
	}
	return crc.Update(crc.UpdateShort(icrcInit, prefix[:n+bth]), pkt[bth:])
}

// Seal writes the ICRC into the last four bytes of pkt, which is a whole packet:
// BTH to pad, and room for the ICRC. A shorter one is the caller's mistake and
// panics.
func (h *Headers) Seal(pkt []byte) {
	n := len(pkt) - ICRCLen
	binary.LittleEndian.PutUint32(pkt[n:], h.ICRC(pkt[:n])) // always little endian (§9.1 R23)
}

// Check reports whether pkt, a whole packet, ends with its right ICRC. All 32
// bits count.
func (h *Headers) Check(pkt []byte) bool {
	return len(pkt) >= minPacket && h.diff(pkt) == 0
}

// diff returns the ICRC found XOR the one expected. len(pkt) >= ICRCLen.
func (h *Headers) diff(pkt []byte) uint32 {
	n := len(pkt) - ICRCLen
	return binary.LittleEndian.Uint32(pkt[n:]) ^ h.ICRC(pkt[:n])
}

// is4 reports whether the packet goes over IPv4.
func (h *Headers) is4() bool {
	return (h.Src.Is4() || h.Src.Is4In6()) && (h.Dst.Is4() || h.Dst.Is4In6())
}

// putPrefix writes the masked IP and UDP headers, id the identification, for a UDP
// payload of n bytes and returns their length.
func (h *Headers) putPrefix(b []byte, id uint16, n int) int {
	if h.is4() {
		return h.putPrefix4(b, id, n)
	}
	_ = b[ipv6Len+udpLen-1]
	be.PutUint32(b, 0x6FFFFFFF) // traffic class and flow label masked
	be.PutUint16(b[4:], uint16(udpLen+n))
	b[6], b[7] = protoUDP, 0xFF
	src, dst := h.Src.As16(), h.Dst.As16()
	copy(b[8:24], src[:])
	copy(b[24:40], dst[:])
	h.putPrefixUDP(b[ipv6Len:], n)
	return ipv6Len + udpLen
}

func (h *Headers) putPrefix4(b []byte, id uint16, n int) int {
	_ = b[ipv4Len+udpLen-1]
	be.PutUint32(b, 0x45FF0000|uint32(uint16(ipv4Len+udpLen+n)))
	be.PutUint32(b[4:], uint32(id)<<16|uint32(h.Frag))
	be.PutUint32(b[8:], 0xFF000000|protoUDP<<16|0xFFFF) // TTL and header checksum masked
	src, dst := h.Src.As4(), h.Dst.As4()
	copy(b[12:16], src[:])
	copy(b[16:20], dst[:])
	h.putPrefixUDP(b[ipv4Len:], n)
	return ipv4Len + udpLen
}

func (h *Headers) putPrefixUDP(b []byte, n int) {
	be.PutUint64(b, uint64(h.SrcPort)<<48|uint64(h.DstPort)<<32|uint64(uint16(udpLen+n))<<16|0xFFFF)
}
