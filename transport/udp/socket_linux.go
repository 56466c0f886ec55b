package udp

import (
	"context"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// listen binds a socket and sets it up before that.
func listen(addr netip.AddrPort, setup func(fd int) error) (*net.UDPConn, error) {
	network := "udp4"
	if addr.Addr().Is6() {
		network = "udp6" // with IPV6_V6ONLY
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		if err := c.Control(func(fd uintptr) { failed = setup(int(fd)) }); err != nil {
			return err
		}
		return failed
	}}
	pc, err := lc.ListenPacket(context.Background(), network, addr.String())
	if err != nil {
		return nil, err
	}
	return pc.(*net.UDPConn), nil
}

// setOpts sets integer options in order and stops at the first that fails.
func setOpts(fd int, opts []option) error {
	for _, o := range opts {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return err
		}
	}
	return nil
}

type option struct{ level, name, value int }

// usualTOS is the traffic class of nearly all packets, ECT(0), which the sockets have.
// Any other costs a control message.
const usualTOS = 2

// sendOpts give don't-fragment and, on IPv4, identification 0 (§1.5).
func sendOpts(v6 bool) []option {
	if v6 {
		return []option{
			{unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO},
			{unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1},
		}
	}
	return []option{{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO}}
}

// usual gives usualTOS.
func usual(v6 bool) option {
	if v6 {
		return option{unix.IPPROTO_IPV6, unix.IPV6_TCLASS, usualTOS}
	}
	return option{unix.IPPROTO_IP, unix.IP_TOS, usualTOS}
}

// recvOpts show the traffic class and take IPv6 packets without UDP checksum,
// which rxe sends (§1.4).
func recvOpts(v6 bool) []option {
	if v6 {
		return []option{
			{unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1},
			{unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_RX, 1},
		}
	}
	return []option{{unix.IPPROTO_IP, unix.IP_RECVTOS, 1}}
}

// setBuffer asks for a socket buffer beyond the system's limit, and within it if
// that is not allowed. The kernel never refuses the second.
func setBuffer(fd, force, plain, size int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, size)
}

// dropAll makes a socket that only sends refuse what arrives at its port.
func dropAll(fd int) error {
	ret0 := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: 1, Filter: &ret0})
}
