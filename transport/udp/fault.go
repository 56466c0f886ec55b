package udp

import (
	"errors"
	"net/netip"
	"syscall"

	"github.com/gohixl/hixl/transport"
)

// faultKind is what the system's error means for the first packet of a send.
type faultKind uint8

const (
	faultOther       faultKind = iota
	faultBusy                  // the send buffer is full, for the moment
	faultFull                  // a queue below is full: this packet is lost
	faultEarlier               // news about an earlier packet, or a signal
	faultUnreachable           // no way to the destination now: lost
	faultSize                  // larger than the path takes
	faultTrain                 // the kernel or device does not do this train
)

// txErrorTries bounds repeats for errors that concern earlier packets.
const txErrorTries = 8

// faultOf finds the system's error in one of package net.
func faultOf(err error) faultKind {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return fault(errno, false)
	}
	return faultOther
}

// refused reports a packet that the system will never send, naming the usual
// reason.
func refused(local netip.Addr, t *transport.Tx, err error) error {
	reason := "the kernel refused"
	if local.IsLoopback() && !t.Dst.IsLoopback() {
		reason = "from the loopback address " + local.String() + " only this host is reached: open the NIC on another address"
	}
	return &transport.TxError{Dst: t.Dst, Reason: reason, Err: err}
}

// overhead is the bytes of IP and UDP header of a packet from local.
func overhead(local netip.Addr) int {
	if local.Is6() {
		return 48
	}
	return 28
}
