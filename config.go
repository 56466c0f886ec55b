package hixl

import (
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/gohixl/hixl/internal/connmgr"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/udp"
)

// Config describes a NIC. The zero value opens 127.0.0.1.
type Config struct {
	// Address is a local address; IPv6 link-local ones need their zone. The zero
	// value is 127.0.0.1. Not with Transport.
	Address netip.Addr
	// UDP sets up the sockets on Address: how many receive (Shards), how large their
	// buffers are. Not with Transport.
	UDP udp.Config
	// Transport carries the packets instead of sockets on Address. The NIC closes
	// it; when OpenNIC fails, it is the caller's to close, which may be the second
	// time.
	Transport transport.Conn
	// OpenTransport opens what carries the packets of Address, such as AF_XDP sockets;
	// nil opens UDP sockets. The NIC closes it, also when OpenNIC fails. Not with
	// Transport, nor with UDP.
	OpenTransport func(netip.Addr) (transport.Conn, error)
	// WrapTransport may put something around the transport: a tap, faults.
	WrapTransport func(transport.Conn) transport.Conn
	// MTU limits the path MTU: 256, 512, 1024, 2048 or 4096 bytes of payload. 0 is
	// the largest that fits the transport.
	MTU int
	// MaxQPs limits the queue pairs, default 16,384, at most 262,144. MaxRegions
	// limits the regions, default and at most 524,288.
	MaxQPs, MaxRegions int
	// Events is how many asynchronous events wait, default 256.
	Events int
	// PathWindow is what all reliable connections to one address may have unanswered
	// together, in bytes of packets; 64 KiB or more, default 2,129,920: 512 packets of
	// 4096 bytes and what else they weigh. Those that may send no more
	// take turns. It is never more than a quarter of the socket's receive buffer, since
	// the peer's is taken to be like ours. Over long distances more is of use.
	PathWindow int
	// NoECN leaves packets unmarked instead of ECN-capable. NoTrains sends every
	// packet on its own. NoICRCCheck takes packets whatever their ICRC says: for
	// laboratories that rewrite packets, since nothing else checks every byte.
	NoECN, NoTrains, NoICRCCheck bool
	// Progress chooses between latency and processor time: how long whoever waits
	// looks for packets before it parks. The zero value is [Balanced].
	Progress Progress
	// Logger gets what an operator should know, rarely; nil is off.
	Logger *slog.Logger
	// Peers says how the context of [Open] treats its peers. [OpenNIC] makes no
	// context and does not look at it.
	Peers PeerConfig

	// Stepped makes a NIC without goroutines, which its owner drives by Poll and
	// Next, from one goroutine, with Clock as the time.
	Stepped bool
	// Clock is the time; nil is the system's monotonic clock.
	Clock func() mono.Time
}

// open opens the transport, unless there is one, and wraps it.
func (c *Config) open() (transport.Conn, error) {
	if err := c.checkTransport(); err != nil {
		return nil, err
	}
	conn := c.Transport
	if conn == nil {
		opened, err := c.opened()
		if err != nil {
			return nil, err
		}
		conn = opened
	}
	if c.WrapTransport != nil {
		conn = c.WrapTransport(conn)
	}
	return conn, nil
}

// checkTransport refuses settings of a transport that would not be looked at.
func (c *Config) checkTransport() error {
	given := c.Transport != nil
	switch {
	case given && c.Address.IsValid():
		return &nic.ConfigError{Field: "Address", Value: c.Address, Allowed: "nothing, when Transport is given"}
	case given && c.OpenTransport != nil:
		return &nic.ConfigError{Field: "OpenTransport", Value: "a function", Allowed: "nothing, when Transport is given"}
	case (given || c.OpenTransport != nil) && c.UDP != (udp.Config{}):
		return &nic.ConfigError{Field: "UDP", Value: fmt.Sprintf("%+v", c.UDP), Allowed: "nothing, when Transport or OpenTransport is given"}
	}
	return nil
}

// opened opens a transport on Address.
func (c *Config) opened() (transport.Conn, error) {
	addr := c.Address
	if !addr.IsValid() {
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if c.OpenTransport != nil {
		return c.OpenTransport(addr)
	}
	return udp.Open(addr, c.UDP)
}

// regions is how many regions the NIC must be able to hold, its connection
// manager's included.
func (c *Config) regions() int {
	if c.MaxRegions <= 0 || c.MaxRegions > mr.MaxRegions-connmgr.Regions {
		return c.MaxRegions
	}
	return c.MaxRegions + connmgr.Regions
}

func (c *Config) mtu() (roce.PathMTU, error) {
	if c.MTU == 0 {
		return 0, nil
	}
	return roce.PathMTUFor(c.MTU)
}

// Defaults of a queue pair.
const (
	// DefaultReads is how many READs and atomics a queue pair has in flight, in
	// either direction.
	DefaultReads = 16
	// DefaultTimeout is the ACK timeout exponent: 4.096 µs · 2^14 = 67 ms.
	DefaultTimeout = 14
	// DefaultRetries is the retry count, and the RNR retry count, which means
	// without end there.
	DefaultRetries = 7
	// DefaultRNRTimer is the RNR timer code: 0.64 ms.
	DefaultRNRTimer = 12
	// None is 0 where 0 means the default.
	None = -1
)

// QPConfig describes a queue pair. PD must be given, and where completions go.
type QPConfig struct {
	PD *PD
	// Type is the service: RC (the zero value), UC or UD.
	Type Type
	// QKey is what a datagram must carry to be received by a UD queue pair.
	QKey uint32
	// SendCQ and RecvCQ take the completions; they may be one. SendSink and
	// RecvSink take their place when given.
	SendCQ, RecvCQ     *CQ
	SendSink, RecvSink Sink
	// SRQ takes the place of the queue pair's own receive queue.
	SRQ *SRQ
	// MaxSendWR and MaxRecvWR size the queues, 1..32,768, default 128.
	MaxSendWR, MaxRecvWR int
	// MaxSendSGE and MaxRecvSGE bound the entries of a work request, 1..32,
	// default 4.
	MaxSendSGE, MaxRecvSGE int
	// MaxInline bounds inline data, 1..256 bytes, default 256; [None] allows none.
	MaxInline int
	// SignalAll makes every send request signaled.
	SignalAll bool
	// Access is what the peer may do, default RemoteRead|RemoteWrite|RemoteAtomic.
	// NoRemote grants nothing.
	Access   Access
	NoRemote bool
	// MaxReads is how many READs and atomics the peer may have in flight,
	// 1..128, default [DefaultReads]; [None] allows none.
	MaxReads int
}

// orDefault returns def for 0 and 0 for None.
func orDefault(v, def int) int {
	switch v {
	case 0:
		return def
	case None:
		return 0
	}
	return v
}

func (c *QPConfig) resolve() (qp.Config, error) {
	if c.PD == nil {
		return qp.Config{}, &nic.ConfigError{Field: "QPConfig.PD", Value: "missing", Allowed: "a protection domain of the NIC, from AllocPD"}
	}
	if c.NoRemote && c.Access != 0 {
		return qp.Config{}, &nic.ConfigError{Field: "QPConfig.NoRemote", Value: "set with Access " + c.Access.String(), Allowed: "one of the two"}
	}
	if bad := c.Access &^ qp.RemoteAccess; bad != 0 {
		return qp.Config{}, &nic.ConfigError{Field: "QPConfig.Access", Value: c.Access, Allowed: "any of " + qp.RemoteAccess.String()}
	}
	if n := orDefault(c.MaxReads, DefaultReads); n < 0 || n > qp.MaxReads {
		return qp.Config{}, &nic.ConfigError{Field: "QPConfig.MaxReads", Value: c.MaxReads, Allowed: fmt.Sprintf("1 to %d, 0 for %d, None for none", qp.MaxReads, DefaultReads)}
	}
	if c.Type > UD {
		return qp.Config{}, &nic.ConfigError{Field: "QPConfig.Type", Value: c.Type, Allowed: "RC, UC or UD"}
	}
	cfg := qp.Config{
		Type: c.Type, PD: c.PD.pd, SRQ: c.SRQ, SendSink: c.SendSink, RecvSink: c.RecvSink,
		MaxSendWR: c.MaxSendWR, MaxRecvWR: c.MaxRecvWR, MaxSendSGE: c.MaxSendSGE, MaxRecvSGE: c.MaxRecvSGE,
		MaxInline: orDefault(c.MaxInline, qp.MaxInline), SignalAll: c.SignalAll,
	}
	if cfg.SendSink == nil && c.SendCQ != nil {
		cfg.SendSink = c.SendCQ
	}
	if cfg.RecvSink == nil && c.RecvCQ != nil {
		cfg.RecvSink = c.RecvCQ
	}
	if cfg.SendSink == nil || cfg.RecvSink == nil {
		return cfg, &nic.ConfigError{Field: "QPConfig.SendCQ, RecvCQ", Value: "missing", Allowed: "completion queues of the NIC, which may be one and the same, or sinks"}
	}
	return cfg, nil
}

// access is what the peer may do.
func (c *QPConfig) access() Access {
	if c.Access == 0 && !c.NoRemote {
		return qp.RemoteAccess
	}
	return c.Access
}
