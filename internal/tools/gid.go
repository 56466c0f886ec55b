package tools

import (
	"errors"
	"net/netip"
)

// GID returns the 16 bytes that name an address in an exchange: IPv4 addresses
// are mapped (§1.6).
func GID(a netip.Addr) [16]byte { return a.As16() }

// AddrOfGID returns the address a peer's GID stands for, or says why it is none
// that packets can be sent to from local: both must be of one family.
func AddrOfGID(g [16]byte, local netip.Addr) (netip.Addr, error) {
	a := netip.AddrFrom16(g).Unmap()
	switch {
	case a.IsUnspecified():
		return a, errors.New("the peer named no GID; give it one of an IP address (-g for the pingpongs, -x for perftest)")
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return a, errors.New("the peer's GID " + a.String() + " is no address of one host")
	case a.Is4() != local.Is4():
		return a, errors.New("the peer's GID is " + a.String() + ", this side's address " + local.String() +
			": choose the same IP version at both ends (--local here, the GID index there)")
	}
	return a, nil
}
