package hostinfo

import (
	"fmt"
	"net"

	"github.com/gohixl/hixl/roce"
)

// Interface is one network interface and the packets that fit it.
type Interface struct {
	Name      string   `json:"name"`
	Up        bool     `json:"up"`
	MTU       int      `json:"mtu"`           // bytes of an IP packet
	PathMTU   int      `json:"path_mtu"`      // payload bytes a packet: the largest ≤ MTU-96 (§1.12), 0 if none
	Addresses []string `json:"addresses"`     // with prefix length
	XDP       string   `json:"xdp,omitempty"` // what AF_XDP finds there; filled in by who knows
	Cost      string   `json:"cost,omitempty"`
	Remedy    string   `json:"remedy,omitempty"`
}

// interfaces lists the host's network interfaces in the system's order.
func interfaces() []Interface {
	list, err := net.Interfaces()
	if err != nil {
		return nil
	}
	out := make([]Interface, 0, len(list))
	for _, i := range list {
		n := newInterface(i.Name, i.MTU, i.Flags&net.FlagUp != 0)
		addrs, _ := i.Addrs() // none listed if the interface just went away
		for _, a := range addrs {
			n.Addresses = append(n.Addresses, a.String())
		}
		out = append(out, n)
	}
	return out
}

// newInterface judges the MTU of an interface by the rule of the connection
// manager. One that is down gets no advice.
func newInterface(name string, mtu int, up bool) Interface {
	n := Interface{Name: name, Up: up, MTU: mtu, Addresses: []string{}}
	if m, err := roce.CMMTU(mtu); err == nil {
		n.PathMTU = m.Bytes()
	}
	switch {
	case !up:
	case n.PathMTU == 0:
		n.Cost = "no RoCEv2 packet fits"
		n.Remedy = raise(name, roce.MTU256)
	case n.PathMTU < roce.MaxMTU:
		n.Cost = fmt.Sprintf("%d packets where path MTU %d needs one; with segmentation and coalescing that is little, "+
			"without them 3 to 4 times the CPU a byte", roce.MaxMTU/n.PathMTU, roce.MaxMTU)
		n.Remedy = raise(name, roce.MTU4096)
	}
	return n
}

// raise says how to make a path MTU fit.
func raise(name string, want roce.PathMTU) string {
	need := want.Bytes()
	for m, _ := roce.CMMTU(need); m < want; m, _ = roce.CMMTU(need) {
		need++
	}
	return fmt.Sprintf("raise the MTU to %d or more, on the peer and all between as well (Linux: ip link set dev %s mtu %d)",
		need, name, need)
}
