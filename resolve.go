package hixl

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/gohixl/hixl/internal/nic"
)

// lookup returns what an address of package net's form means to a NIC: addresses
// of its family, without zones.
func (n *NIC) lookup(ctx context.Context, r *net.Resolver, network, address string) ([]netip.AddrPort, error) {
	if r == nil {
		r = net.DefaultResolver
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := r.LookupPort(ctx, network, service)
	if err != nil {
		return nil, err
	}
	addrs, err := n.lookupHost(ctx, r, host)
	if err != nil {
		return nil, err
	}
	peers := make([]netip.AddrPort, len(addrs))
	for i, a := range addrs {
		peers[i] = netip.AddrPortFrom(a, uint16(port))
	}
	return peers, nil
}

func (n *NIC) lookupHost(ctx context.Context, r *net.Resolver, host string) ([]netip.Addr, error) {
	own := n.Address()
	if host == "" {
		return []netip.Addr{own}, nil
	}
	family := "ip4"
	if own.Is6() {
		family = "ip6"
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		addrs, err := r.LookupNetIP(ctx, family, host)
		for i := range addrs {
			addrs[i] = addrs[i].Unmap().WithZone("")
		}
		return addrs, err
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() != own.Is4() {
		return nil, &nic.ConfigError{Field: "host", Value: host, Allowed: fmt.Sprintf("an address of the family of the NIC's, %v", own)}
	}
	return []netip.Addr{addr}, nil
}

// ownPort checks that an address is the NIC's and returns its port.
func (n *NIC) ownPort(ctx context.Context, r *net.Resolver, address string) (uint16, error) {
	if host, service, err := net.SplitHostPort(address); err == nil {
		if a, err := netip.ParseAddr(host); err == nil && a.IsUnspecified() {
			address = net.JoinHostPort("", service)
		}
	}
	peers, err := n.lookup(ctx, r, "tcp", address)
	if err != nil {
		return 0, err
	}
	for _, p := range peers {
		if p.Addr() == n.Address() {
			return p.Port(), nil
		}
	}
	return 0, &nic.ConfigError{Field: "host", Value: address, Allowed: fmt.Sprintf("the NIC's address, %v, or none", n.Address())}
}

// tryTime is the longest attempt when there are other addresses to try.
const tryTime = 5 * time.Second

// share bounds one of several attempts that are left, so that those after it have
// time too: an equal part of what ctx has.
func share(ctx context.Context, left int) (context.Context, context.CancelFunc) {
	if left <= 1 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, min(tryTime, nic.TimeLeft(ctx)/time.Duration(left)))
}

// ephemeral draws a port of 49152 to 65535.
func ephemeral() uint16 {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return 0xC000 | binary.NativeEndian.Uint16(b[:])
}

func tooLong(n, most int) error {
	return &nic.ConfigError{Field: "PrivateData", Value: fmt.Sprintf("%d bytes", n), Allowed: fmt.Sprintf("at most %d", most)}
}
