//go:build !linux

package xdp

import (
	"fmt"
	"net/netip"
	"runtime"

	"github.com/gohixl/hixl/transport"
)

// Conn owns one local address; there is none on this system.
type Conn struct{ transport.Conn }

// Info tells what the system granted.
func (c *Conn) Info() Info { return Info{} }

// Accounting says where the frames are.
func (c *Conn) Accounting() Accounting { return Accounting{} }

// Describe says that there is no AF_XDP.
func Describe(string) string { return "no: " + runtime.GOOS + " has no AF_XDP" }

// Open fails: AF_XDP is Linux's. The error unwraps to [ErrUnsupported].
func Open(addr netip.Addr, cfg Config) (*Conn, error) {
	if _, err := cfg.fill(); err != nil {
		return nil, err
	}
	return nil, &transport.OpenError{
		Addr: addr, Kind: ErrUnsupported, Err: fmt.Errorf("%s has no AF_XDP", runtime.GOOS),
		Hint: "use the UDP transport, which is the default",
	}
}
