package transport

import (
	"errors"
	"fmt"
	"net/netip"
)

// Sentinels for errors.Is.
var (
	// ErrTrainsOff: the carrier found out that it cannot send trains here. The
	// packets of the train were not sent; seal them again as single packets.
	ErrTrainsOff = errors.New("transport: trains are off")
	// ErrTooBig: a packet is larger than the link or path takes (*MTUError).
	ErrTooBig = errors.New("transport: packet larger than the path MTU")
	// ErrTx: a Tx that can never be sent as it is (*TxError).
	ErrTx = errors.New("transport: packet cannot be sent")
	// ErrNoBuffer: a receive slot has no storage; NewBatch makes some that have.
	ErrNoBuffer = errors.New("transport: receive slot without storage: make the batch with transport.NewBatch")
	// ErrConfig: a configuration value out of its limits (*ConfigError).
	ErrConfig = errors.New("transport: bad configuration")
	// ErrInUse: somebody else owns UDP port 4791 of the address.
	ErrInUse = errors.New("transport: port 4791 is in use")
	// ErrNoAddr: the address is not one of this host.
	ErrNoAddr = errors.New("transport: address is not local")
	// ErrPermission: the system does not let this process do it.
	ErrPermission = errors.New("transport: not permitted")
)

// OpenError says why an address could not be opened.
type OpenError struct {
	Addr netip.Addr
	Kind error  // ErrInUse, ErrNoAddr, ErrPermission, or nil for anything else
	Err  error  // what the system said
	Hint string // what to do
}

func (e *OpenError) Error() string {
	s := fmt.Sprintf("transport: cannot open %s: %v", netip.AddrPortFrom(e.Addr, Port), e.Err)
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// Unwrap gives the kind and the system's error.
func (e *OpenError) Unwrap() []error {
	if e.Kind == nil {
		return []error{e.Err}
	}
	return []error{e.Kind, e.Err}
}

// MTUError reports a packet that is larger than the path takes with DF set.
type MTUError struct {
	Dst   netip.Addr
	Bytes int // size of the IP packet
	MTU   int // what the path takes, 0 when not known
}

func (e *MTUError) Error() string {
	limit := "an unknown, smaller size"
	if e.MTU > 0 {
		limit = fmt.Sprintf("%d bytes", e.MTU)
	}
	return fmt.Sprintf("transport: IP packet of %d bytes to %s, but the path takes %s: "+
		"use a smaller path MTU for the queue pair (it needs 80 bytes beyond its payload) or raise the MTU of the link",
		e.Bytes, e.Dst, limit)
}

// Unwrap gives ErrTooBig.
func (e *MTUError) Unwrap() error { return ErrTooBig }

// TxError reports a Tx that can never be sent as it is.
type TxError struct {
	Dst    netip.Addr
	Reason string // what was given, and what is allowed
	Err    error  // the system's error, if it was the system that refused
}

func (e *TxError) Error() string {
	s := fmt.Sprintf("transport: cannot send to %s: %s", e.Dst, e.Reason)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives ErrTx and the system's error.
func (e *TxError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrTx}
	}
	return []error{ErrTx, e.Err}
}

// ConfigError reports a configuration value out of its limits.
type ConfigError struct {
	Field   string
	Value   any
	Allowed string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("transport: %s is %v, allowed: %s", e.Field, e.Value, e.Allowed)
}

// Unwrap gives ErrConfig.
func (e *ConfigError) Unwrap() error { return ErrConfig }

// CheckTx reports what makes t impossible to send from an address of local's
// family with the given limits, or nil. Carriers call it; it allocates only for
// an error.
func CheckTx(t *Tx, local netip.Addr, trains Trains) error {
	overhead := 28 // IPv4 and UDP header
	if local.Is6() {
		overhead = 48
	}
	switch {
	case t.Dst.Is4() != local.Is4() || !t.Dst.IsValid() || t.Dst.IsUnspecified():
		return &TxError{Dst: t.Dst, Reason: "destination must be an address of the family of the local address " + local.String()}
	case len(t.Data) == 0:
		return &TxError{Dst: t.Dst, Reason: "no data"}
	case !t.IsTrain():
		if n := len(t.Data) + overhead; n > 65535 {
			return &MTUError{Dst: t.Dst, Bytes: n, MTU: 65535}
		}
	case !trains.On():
		return ErrTrainsOff
	case t.Packets() > trains.MaxSegments || len(t.Data) > trains.MaxBytes:
		return &TxError{Dst: t.Dst, Reason: fmt.Sprintf("train of %d packets, %d bytes; allowed: %d packets, %d bytes",
			t.Packets(), len(t.Data), trains.MaxSegments, trains.MaxBytes)}
	}
	return nil
}
