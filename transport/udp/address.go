package udp

import (
	"errors"
	"net"
	"net/netip"
	"syscall"

	"github.com/gohixl/hixl/transport"
)

// fallbackMTU is Ethernet's, for an address whose interface is not found.
const fallbackMTU = 1500

var (
	errNotHost = errors.New("not the address of one host")
	errNoZone  = errors.New("a link-local address without zone")
)

// checkAddr refuses what can never be opened.
func checkAddr(a netip.Addr) error {
	switch {
	case !a.IsValid() || a.IsUnspecified() || a.IsMulticast():
		return &transport.OpenError{
			Addr: a, Kind: transport.ErrNoAddr, Err: errNotHost,
			Hint: "give one unicast address of this host, such as 127.0.0.1",
		}
	case a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "":
		return &transport.OpenError{
			Addr: a, Kind: transport.ErrNoAddr, Err: errNoZone,
			Hint: "name the interface, as in fe80::1%eth0",
		}
	}
	return nil
}

// openError explains why a socket could not be had.
func openError(a netip.Addr, err error) error {
	e := &transport.OpenError{Addr: a, Err: err}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		e.Kind, e.Hint = transport.ErrInUse, inUseHint(a)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		e.Kind = transport.ErrNoAddr
		e.Hint = "this host does not have the address (list them with: ip -brief addr); an IPv6 address may still be tentative"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		e.Kind = transport.ErrPermission
		e.Hint = "port 4791 needs no privilege by itself: a security policy (SELinux, seccomp, cgroup BPF) forbids it"
	case errors.Is(err, syscall.EAFNOSUPPORT):
		e.Kind, e.Hint = transport.ErrNoAddr, "this system has the address family switched off"
	}
	return e
}

// findInterface returns the interface that has the address, or nil.
func findInterface(a netip.Addr) *net.Interface {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	want := a.WithZone("")
	for i := range all {
		if z := a.Zone(); z != "" && all[i].Name != z {
			continue
		}
		addrs, err := all[i].Addrs()
		if err != nil {
			continue
		}
		for _, each := range addrs {
			prefix, err := netip.ParsePrefix(each.String())
			if err != nil {
				continue
			}
			// All of 127.0.0.0/8 is local to the loopback interface.
			if prefix.Addr() == want || (want.IsLoopback() && prefix.Addr().IsLoopback() && prefix.Contains(want)) {
				return &all[i]
			}
		}
	}
	return nil
}
