package tools

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/udp"
)

// Defaults and limits.
const (
	// DefaultPort is the TCP port of perftest and of the libibverbs pingpongs.
	DefaultPort = 18515
	// DefaultPatience is how long a silent peer is waited for: perftest's own
	// check for life ends after 60 s too.
	DefaultPatience = 60 * time.Second
	// DefaultQKey is the Q_Key of both families' datagrams (§5.1).
	DefaultQKey = 0x11111111
)

// Common are the settings that all tools share. The zero value is a server on
// every address.
type Common struct {
	// Host is the server to connect to; empty makes this side the server.
	Host string
	// Port is the server's port, 1..65535, default that of the original.
	Port int
	// Local is the address of the NIC. The zero value stands for the address
	// that the connection to the peer has at this end.
	Local netip.Addr
	// Bind is the address a server listens on for the exchange, default all.
	Bind string
	// Patience bounds the peer's silence, default [DefaultPatience].
	Patience time.Duration
	// NoTrains makes the NIC send each packet by itself.
	NoTrains bool
	// Carrier opens what carries the packets of an address; nil is UDP sockets.
	// The NIC closes it.
	Carrier func(netip.Addr) (transport.Conn, error)
	// Out takes what the tool prints; nil is nothing.
	Out io.Writer
	// Ready, if not nil, is called once a server listens.
	Ready func(net.Addr)

	outErr error // the first of Printf
}

// Printf prints to Out. Whoever runs to the end returns OutErr.
func (c *Common) Printf(format string, args ...any) {
	if _, err := fmt.Fprintf(c.Out, format, args...); err != nil && c.outErr == nil {
		c.outErr = err
	}
}

// OutErr returns why something could not be printed.
func (c *Common) OutErr() error { return c.outErr }

// Fill puts the defaults in and checks the rest. port is the tool's own.
func (c *Common) Fill(port int) error {
	if c.Port == 0 {
		c.Port = port
	}
	if c.Port < 1 || c.Port > 65535 {
		return &OptionError{"--port", c.Port, "a port is 1 to 65535"}
	}
	if c.Patience == 0 {
		c.Patience = DefaultPatience
	}
	if c.Patience < 0 {
		return &OptionError{"--patience", c.Patience, "a time above 0, such as 60s"}
	}
	if c.Local.IsValid() && (c.Local.IsUnspecified() || c.Local.IsMulticast()) {
		return &OptionError{"--local", c.Local, "one address of this host"}
	}
	if c.Bind != "" && c.Host != "" {
		return &OptionError{"--bind", c.Bind, "only a server listens; a client's address is --local"}
	}
	if c.Out == nil {
		c.Out = io.Discard
	}
	return nil
}

// Client reports whether this side connects.
func (c *Common) Client() bool { return c.Host != "" }

// OpenNIC opens the NIC on Local, or else on the address that a connection has
// at this end. mtu is the path MTU in bytes, 0 for the largest.
func (c *Common) OpenNIC(fallback netip.Addr, mtu int) (*hixl.NIC, error) {
	addr := c.Local
	if !addr.IsValid() {
		addr = fallback
	}
	cfg := hixl.Config{Address: addr, OpenTransport: c.Carrier, MTU: mtu, NoTrains: c.NoTrains}
	if c.Carrier == nil && c.NoTrains {
		cfg.UDP.Trains = udp.TrainsOff
	}
	return hixl.OpenNIC(cfg)
}

// Progress counts the peer's packets that brought something new, for a watch: not
// what is sent again without end to a receiver that has nothing posted.
func Progress(n *hixl.NIC) uint64 {
	s := n.Stats()
	idle := s.RC.RNRsReceived + s.RC.RNRsSent + s.RC.Duplicates + s.RC.OutOfSequence + s.RC.StaleResponses
	return s.RxPackets - idle
}
