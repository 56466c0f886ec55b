package cm

import "net/netip"

// GID is an address as CM messages carry it: an IPv6 address, or an IPv4 address
// mapped to ::ffff:a.b.c.d, which means IPv4 on the wire (§1.6).
type GID [16]byte

// GIDOf returns the GID of an address; its zone is left out.
func GIDOf(addr netip.Addr) GID {
	if !addr.IsValid() {
		return GID{}
	}
	return addr.As16()
}

// Addr returns the address, an IPv4 one unmapped.
func (g GID) Addr() netip.Addr { return netip.AddrFrom16(g).Unmap() }

// String returns the address.
func (g GID) String() string { return g.Addr().String() }

// GUIDFromMAC returns the EUI-64 of an Ethernet address, which rdma_rxe uses as
// CA GUID: bit 1 of the first byte flipped, ff fe in the middle (§1.6, §5.6).
func GUIDFromMAC(mac [6]byte) uint64 {
	return be.Uint64([]byte{mac[0] ^ 2, mac[1], mac[2], 0xFF, 0xFE, mac[3], mac[4], mac[5]})
}
