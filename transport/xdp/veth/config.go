package veth

import (
	"errors"
	"net/netip"
)

// ErrUnsupported says that this system has no network namespaces.
var ErrUnsupported = errors.New("veth: network namespaces are Linux's")

// Config describes a Pair. The zero value is good.
type Config struct {
	MTU    int // of the links, 68..65535, default 1500
	Queues int // of each link, 1..64, default 1
	// VLAN is the id of a VLAN on both links that has the addresses in their
	// stead, 1..4094; 0 is none.
	VLAN int
}

// The addresses of the two ends, in networks of 24 and 64 bits. Namespaces of
// their own make them nobody else's.
var (
	Addrs4 = [2]netip.Addr{netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("10.77.0.2")}
	Addrs6 = [2]netip.Addr{netip.MustParseAddr("fd77::1"), netip.MustParseAddr("fd77::2")}
)

// The names of the links, and of the VLANs on them.
var (
	Links = [2]string{"hixl0", "hixl1"}
	VLANs = [2]string{"hixl0.v", "hixl1.v"}
)
