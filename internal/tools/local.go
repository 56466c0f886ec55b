package tools

import (
	"context"
	"net"
	"net/netip"
	"strconv"
)

// RouteTo returns the address that packets to the server of c would leave from.
// Nothing is sent. The error is an *[ExchangeError].
func RouteTo(ctx context.Context, c *Common) (netip.Addr, error) {
	addr := net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp", addr)
	if err != nil {
		return netip.Addr{}, &ExchangeError{Peer: addr, Step: "connecting", Problem: "no route; --local chooses the address here", Err: err}
	}
	defer conn.Close()
	u, _ := conn.LocalAddr().(*net.UDPAddr)
	return u.AddrPort().Addr().Unmap(), nil
}

// FirstAddr returns the first address of this host that others can reach, IPv4
// before IPv6, and 127.0.0.1 when there is none.
func FirstAddr() netip.Addr {
	all, _ := net.InterfaceAddrs()
	var v6 netip.Addr
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || !p.Addr().IsGlobalUnicast() {
			continue
		}
		if p.Addr().Is4() {
			return p.Addr()
		}
		if !v6.IsValid() {
			v6 = p.Addr()
		}
	}
	if v6.IsValid() {
		return v6
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// NICAddr returns where the NIC of a tool goes that has no connection to the peer
// yet: Local, else the way to the host, else the first address.
func (c *Common) NICAddr(ctx context.Context) (netip.Addr, error) {
	switch {
	case c.Local.IsValid():
		return c.Local, nil
	case c.Client():
		return RouteTo(ctx, c)
	}
	return FirstAddr(), nil
}
