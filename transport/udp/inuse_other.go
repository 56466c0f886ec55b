//go:build !linux

package udp

import "net/netip"

func inUseHint(a netip.Addr) string {
	return "another hixl NIC, here or in another process, is most likely open on " + a.String() +
		"; close it or use another address"
}
