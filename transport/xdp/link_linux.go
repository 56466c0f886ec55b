package xdp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
)

// linkState is the link of a Conn: who it is, and how it is now.
type linkState struct {
	name   string // set once, as all up to max
	index  int    // of the link with the rings
	out    int    // of the one with the address, which may be a VLAN on it
	tagged bool
	vlan   uint16
	most   int64 // the MTU that the memory was made for

	mac    atomic.Pointer[[6]byte]
	mtu    atomic.Int64
	usable atomic.Bool // up, and the address is there

	// The watcher's own.
	up, here bool
}

var (
	errNoLink   = errors.New("no link has the address")
	errElse     = errors.New("the link does not have the address, nor has a VLAN on it")
	errLoopback = errors.New("it is the loopback interface's")
	errEther    = errors.New("it is not an Ethernet link")
)

// findLink finds the link that has the address, or that cfg names.
func findLink(h *netlink.Handle, addr netip.Addr, cfg *Config) (*linkState, error) {
	fail := func(kind, err error, hint string) (*linkState, error) {
		return nil, &transport.OpenError{Addr: addr, Kind: kind, Err: err, Hint: hint}
	}
	owner, err := linkWith(h, addr)
	if err != nil {
		return fail(transport.ErrNoAddr, err, "list the addresses of this host with: ip -brief addr")
	}
	bound := owner
	if cfg.Interface != "" && cfg.Interface != owner.Attrs().Name {
		if bound, err = h.LinkByName(cfg.Interface); err != nil {
			return fail(transport.ErrNoAddr, fmt.Errorf("xdp.Config.Interface %q: %w", cfg.Interface, err), "list the links of this host with: ip -brief link")
		}
	}
	l := &linkState{name: bound.Attrs().Name, index: bound.Attrs().Index, out: owner.Attrs().Index}
	if bound.Attrs().Index != owner.Attrs().Index {
		vlan, ok := owner.(*netlink.Vlan)
		if !ok || owner.Attrs().ParentIndex != l.index {
			return fail(transport.ErrNoAddr, fmt.Errorf("%s: %w", l.name, errElse),
				fmt.Sprintf("%s has it: leave xdp.Config.Interface empty", owner.Attrs().Name))
		}
		l.tagged, l.vlan = true, uint16(vlan.VlanId)
	}
	switch {
	case bound.Attrs().Flags&net.FlagLoopback != 0:
		return fail(ErrUnsupported, errLoopback, "use the UDP transport there, which is faster")
	case bound.Attrs().EncapType != "ether" || len(bound.Attrs().HardwareAddr) != 6:
		return fail(ErrUnsupported, fmt.Errorf("%s: %w", l.name, errEther), "use the UDP transport there")
	}
	l.most = int64(min(owner.Attrs().MTU, bound.Attrs().MTU, MaxMTU))
	l.here = true
	l.see(bound.Attrs(), owner.Attrs())
	return l, nil
}

// linkWith returns the link that has the address.
func linkWith(h *netlink.Handle, addr netip.Addr) (netlink.Link, error) {
	family := netlink.FAMILY_V4
	if addr.Is6() {
		family = netlink.FAMILY_V6
	}
	all, err := h.AddrList(nil, family)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if a, ok := netip.AddrFromSlice(all[i].IP); !ok || a.Unmap() != addr.WithZone("") {
			continue
		}
		l, err := h.LinkByIndex(all[i].LinkIndex)
		if err != nil {
			return nil, err
		}
		if z := addr.Zone(); z == "" || z == l.Attrs().Name {
			return l, nil
		}
	}
	return nil, errNoLink
}

// see takes over how the link is.
func (l *linkState) see(bound, owner *netlink.LinkAttrs) {
	mac := [6]byte(owner.HardwareAddr)
	l.mac.Store(&mac)
	l.mtu.Store(min(int64(min(bound.MTU, owner.MTU)), l.most))
	const up = unix.IFF_UP | unix.IFF_RUNNING
	l.up = bound.RawFlags&up == up && owner.RawFlags&up == up
	l.usable.Store(l.up && l.here)
}
