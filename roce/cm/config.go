package cm

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/gohixl/hixl/roce"
)

// Defaults of [Config] and of the parameters of commands.
const (
	// DefaultACKDelay is what Linux's rdma_rxe states as its ACK delay (§5.6).
	DefaultACKDelay = 15
	// DefaultACKTimeout is what rdma_rxe asks for with the packet lifetime that
	// newer kernels assume for RoCE, 16 (§5.6).
	DefaultACKTimeout = 17
	// DefaultResponseTimeout is 4.3 s, Linux's (§5.6).
	DefaultResponseTimeout = 20
	// DefaultCMRetries is Linux's (§5.6).
	DefaultCMRetries = 15
	// DefaultRetries is librdmacm's retry and RNR retry count (§5.14).
	DefaultRetries = 7
	// DefaultRNRTimer is 0.64 ms. Code 0, which Linux's connection manager leaves
	// in place, would be 655 ms (C5).
	DefaultRNRTimer = 12
	// DefaultMaxReads is how many READs and atomics are in flight or served.
	DefaultMaxReads = 16
	// DefaultMaxConnections bounds the connections of an agent, those in
	// TIMEWAIT included.
	DefaultMaxConnections = 1 << 16
	// DefaultMaxHalfOpen bounds the requests that are not yet connections.
	DefaultMaxHalfOpen = 4096
	// DefaultMaxHalfOpenPerPeer bounds those of one address.
	DefaultMaxHalfOpenPerPeer = 1024
	// DefaultMaxSIDR bounds the SIDR requests that are being served or whose
	// answers are remembered.
	DefaultMaxSIDR = 4096
)

// None stands for zero in those fields of parameters where 0 means the default.
const None = 0xFF

// Caps on what a peer may dictate. The largest response timeout seen is 22
// (§5.6), the largest service timeout that Linux sends is 24 (§5.8).
const (
	minResponse = 12 // 16 ms: a shorter interval would let a peer make us talk too fast
	maxResponse = 22 // 16 s
	maxService  = 25 // 131 s
	maxTimewait = 22 // 16 s
)

// Config describes an [Agent]. Addr, CAGUID and Rand must be given.
type Config struct {
	// Addr is the NIC's address, IPv4 or IPv6, with a zone if it needs one.
	Addr netip.Addr
	// CAGUID names the NIC to its peers. It must be unique and stable: peers
	// recognise duplicates and stale connections by it (§5.6). See [GUIDFromMAC].
	CAGUID uint64
	// Rand returns 64 random bits. Communication ids and starting PSNs come from
	// it, so outside of tests it must not be predictable.
	Rand func() uint64

	// MTU is the largest path MTU that is asked for and taken; 0 is 1024 bytes.
	MTU roce.PathMTU
	// MaxReads is how many READs and atomics a connection may have in flight
	// and serve, 1 to 128; 0 takes [DefaultMaxReads].
	MaxReads uint8
	// ACKDelay is the exponent of the time this NIC takes to acknowledge; 0
	// takes [DefaultACKDelay], [None] is 0.
	ACKDelay uint8
	// FirstRetry, if not 0, resends a REQ, REP, DREQ or SIDR_REQ for the first
	// time after this time, then after twice as long, and so on up to the
	// interval that the fields of the messages give (§5.8), which is seconds.
	// Peers must take it (C12). 0 keeps to the fields.
	FirstRetry time.Duration

	// Limits; 0 takes the defaults. A request beyond MaxConnections is refused
	// with [ReasonNoQP], one beyond MaxHalfOpen or MaxHalfOpenPerPeer with
	// [ReasonNoResources], a SIDR request beyond its limits with [SIDRNoQP].
	MaxConnections     int
	MaxHalfOpen        int
	MaxHalfOpenPerPeer int
	MaxSIDR            int
}

// fill checks c and puts the defaults in.
func (c *Config) fill() error {
	c.Addr = c.Addr.Unmap()
	switch {
	case !usable(c.Addr):
		return &ParamError{Param: "Addr", Value: c.Addr, Allowed: "the address of a network interface"}
	case c.CAGUID == 0:
		return &ParamError{Param: "CAGUID", Value: 0, Allowed: "a number of this NIC's own"}
	case c.Rand == nil:
		return &ParamError{Param: "Rand", Value: nil, Allowed: "a source of random numbers"}
	case c.MaxReads > 128:
		return &ParamError{Param: "MaxReads", Value: c.MaxReads, Allowed: "1 to 128"}
	case c.FirstRetry < 0:
		return &ParamError{Param: "FirstRetry", Value: c.FirstRetry, Allowed: "0 or more"}
	}
	setDefault(&c.MTU, roce.MTU1024)
	setDefault(&c.MaxReads, DefaultMaxReads)
	c.ACKDelay = orDefault(c.ACKDelay, DefaultACKDelay)
	setDefault(&c.MaxConnections, DefaultMaxConnections)
	setDefault(&c.MaxHalfOpen, DefaultMaxHalfOpen)
	setDefault(&c.MaxHalfOpenPerPeer, DefaultMaxHalfOpenPerPeer)
	setDefault(&c.MaxSIDR, DefaultMaxSIDR)
	if !c.MTU.Valid() {
		return &ParamError{Param: "MTU", Value: c.MTU, Allowed: "256 to 4096 bytes"}
	}
	if c.ACKDelay > maxExponent {
		return &ParamError{Param: "ACKDelay", Value: c.ACKDelay, Allowed: "1 to 31, None or 0"}
	}
	for _, n := range []int{c.MaxConnections, c.MaxHalfOpen, c.MaxHalfOpenPerPeer, c.MaxSIDR} {
		if n < 0 {
			return &ParamError{Param: "limit", Value: n, Allowed: "0 or more"}
		}
	}
	return nil
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// orDefault resolves a field in which 0 is the default and [None] is zero.
func orDefault(v, def uint8) uint8 {
	switch v {
	case 0:
		return def
	case None:
		return 0
	}
	return v
}

// usable reports whether an address can be one end of a connection (§5.5).
func usable(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// usableQPN reports whether a connected queue pair can have the number: 0 and 1
// are the management queue pairs, the last stands for multicast.
func usableQPN(q roce.QPN) bool { return q > roce.QPNGSI && q < roce.QPNMulticast }

// ParamError says which parameter of a command or of [Config] is wrong. It
// unwraps to [ErrParam].
type ParamError struct {
	Param   string
	Value   any
	Allowed string
}

func (e *ParamError) Error() string {
	return fmt.Sprintf("cm: %s is %v, allowed: %s", e.Param, e.Value, e.Allowed)
}

// Unwrap returns [ErrParam].
func (e *ParamError) Unwrap() error { return ErrParam }
