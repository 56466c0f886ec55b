//go:build !linux

package udp

import (
	"net/netip"

	"github.com/gohixl/hixl/transport"
)

// Conn owns one local address.
type Conn struct{ *portable }

var _ transport.Conn = (*Conn)(nil)

// Open takes UDP port 4791 of addr, an address of this host; IPv6 link-local
// ones need their zone. The error is a *transport.OpenError, with
// transport.ErrInUse when somebody has the port already, or a
// *transport.ConfigError.
func Open(addr netip.Addr, cfg Config) (*Conn, error) {
	p, err := openPortable(addr, cfg)
	if err != nil {
		return nil, err
	}
	return &Conn{p}, nil
}
