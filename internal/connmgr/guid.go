package connmgr

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// oui begins every CA GUID: a locally administered EUI-64 prefix, "HX".
const oui = 0x024858

// GUID returns the CA GUID of the NIC with an address: unique where the address
// is, and the same after a restart (§5.6). An IPv4 address is readable in it,
// 02:48:58:04 and its four bytes; of an IPv6 address it has 40 bits of the
// SHA-256, whose first is set.
func GUID(addr netip.Addr) uint64 {
	var b [8]byte
	binary.BigEndian.PutUint32(b[:], oui<<8)
	if addr = addr.Unmap(); addr.Is4() {
		b[3] = 4
		a := addr.As4()
		copy(b[4:], a[:])
	} else {
		a := addr.As16()
		sum := sha256.Sum256(a[:])
		copy(b[3:], sum[:])
		b[3] |= 0x80
	}
	return binary.BigEndian.Uint64(b[:])
}
