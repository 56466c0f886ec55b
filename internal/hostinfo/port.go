package hostinfo

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/gohixl/hixl/roce"
)

// holder is a socket that has a port.
type holder struct {
	addr  netip.Addr // it is bound to; unspecified for all
	inode string     // of the socket, where the system tells
}

// portChecks says whether a NIC could bind UDP port 4791.
func portChecks() []Check {
	return []Check{
		portCheck("port_4791_loopback", netip.MustParseAddr("127.0.0.1"), roce.Port),
		portCheck("port_4791_any4", netip.IPv4Unspecified(), roce.Port),
		portCheck("port_4791_any6", netip.IPv6Unspecified(), roce.Port),
	}
}

func portCheck(name string, addr netip.Addr, port uint16) Check {
	at := netip.AddrPortFrom(addr, port)
	c := Check{Name: name, State: OK, Value: fmt.Sprintf("%s is free", at)}
	if err := tryBind(netip.AddrPortFrom(addr, 0)); err != nil {
		c.Value = fmt.Sprintf("%s cannot be bound: %v", addr, err)
		return c.needs(Unknown, "no NIC opens on this address", "give the host or container an address of this family")
	}
	owner, on, taken := portTaken(at)
	if !taken {
		return c
	}
	if addr.IsUnspecified() && on.IsValid() && !on.IsUnspecified() { // a NIC asks for one address, not for all
		c.Value = fmt.Sprintf("%s is free but for %s, which %s has", at, on, owner)
		return c
	}
	c.Value = fmt.Sprintf("%s is taken by %s", at, owner)
	return c.needs(Missing, "no NIC opens on this address",
		"stop the owner, or open the NIC on another address (127.0.0.2 is as good as 127.0.0.1); "+
			"rdma_rxe lets go with: rdma link delete NAME, or modprobe -r rdma_rxe")
}

// portTaken says whether somebody holds a port in a way that keeps others from
// binding it, who, and on which address, as far as that is known. It asks the
// system's tables where there are any, so that no NIC which opens meanwhile finds
// the port taken by us; only what they leave open is tried by binding.
func portTaken(at netip.AddrPort) (owner string, on netip.Addr, taken bool) {
	holders, err := portHolders(at.Port())
	try := err != nil
	for _, h := range holders {
		switch {
		case sameFamily(h.addr, at.Addr()) && overlap(h.addr, at.Addr()):
			return socketOwner(h.inode), h.addr, true
		case h.addr == netip.IPv6Unspecified():
			try = true // on all IPv4 addresses too, unless it asked not to be
		}
	}
	if try && errors.Is(tryBind(at), syscall.EADDRINUSE) {
		for _, h := range holders {
			return socketOwner(h.inode), h.addr, true
		}
		return "another process", on, true
	}
	return "", on, false
}

func sameFamily(a, b netip.Addr) bool { return a.Is4() == b.Is4() }

// overlap reports whether sockets bound to the two addresses would receive the
// same packets.
func overlap(a, b netip.Addr) bool {
	return a == b || a.IsUnspecified() || b.IsUnspecified()
}

// tryBind opens a UDP socket there and closes it.
func tryBind(at netip.AddrPort) error {
	network := "udp4"
	if at.Addr().Is6() {
		network = "udp6"
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(at))
	if err != nil {
		return err
	}
	return conn.Close()
}

// ipv6Check tries whether IPv6 sockets work at all.
func ipv6Check() Check {
	c := Check{Name: "ipv6", State: OK, Value: "sockets on ::1 work"}
	err := tryBind(netip.AddrPortFrom(netip.IPv6Loopback(), 0))
	if err == nil {
		return c
	}
	c.Value = fmt.Sprintf("no socket on ::1: %v", err)
	return c.needs(Missing, "no IPv6 peers; on IPv6 the whole ICRC is checked, which UDP sockets cannot do on IPv4",
		"Linux: sysctl -w net.ipv6.conf.all.disable_ipv6=0, and in a container an IPv6 network")
}
