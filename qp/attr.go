package qp

import (
	"fmt"
	"net/netip"

	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
)

// RemoteAccess is the set of rights a queue pair can grant its peer. FLUSH is
// not executed, so its rights are refused.
const RemoteAccess = mr.RemoteWrite | mr.RemoteRead | mr.RemoteAtomic

// MaxReads is the largest number of READs and atomics in flight, in either
// direction.
const MaxReads = 128

// AddressVector says where the peer is and how packets to it are marked.
type AddressVector struct {
	// Addr is the peer's address, of the family of the local one and without zone.
	Addr netip.Addr
	// TrafficClass is DSCP<<2 | ECN of the packets sent.
	TrafficClass uint8
	// FlowLabel chooses the UDP source port (20 bits); 0 derives it from the
	// queue pair numbers (§1.4).
	FlowLabel uint32
	// SmallIDs says that the peer sends only the IPv4 identifications 0 to 127,
	// as this package's NIC does, which makes the check of its packets stricter
	// where the identification is hidden.
	SmallIDs bool
}

// Tuning holds what the requester may be told beyond verbs. It is read at the
// transition to RTS; zero values mean the defaults of package roce/rc.
type Tuning struct {
	// WindowBytes and WindowPSNs bound what is unacknowledged.
	WindowBytes, WindowPSNs int
	// AckEvery is how many packets of a long message go without asking for an
	// acknowledgement.
	AckEvery int
	// FixedTimeout switches off timeouts shorter than Timeout.
	FixedTimeout bool
}

// Attr holds the attributes of a queue pair, by their verbs names. Which of them
// count says an [AttrMask].
type Attr struct {
	State, CurState State
	// SQDNotify asks for [EventSQDrained] once the send queue is drained.
	SQDNotify bool
	// Access is what the peer may do, out of [RemoteAccess].
	Access mr.Access
	// PKeyIndex is 0 and Port 1: there is one of each.
	PKeyIndex uint16
	Port      uint8
	QKey      uint32
	AV        AddressVector
	PathMTU   roce.PathMTU
	DestQPN   roce.QPN
	// RecvPSN is what the peer sends first, SendPSN what this side sends first.
	RecvPSN, SendPSN roce.PSN
	// Timeout is the ACK timeout exponent, 4.096 µs · 2^Timeout, 0..31; 0 is never.
	Timeout uint8
	// RetryCount and RNRRetry are 0..7; RNRRetry 7 is without end.
	RetryCount, RNRRetry uint8
	// MinRNRTimer is the code of RNR NAKs sent, 0..31; 0 is 655 ms, 12 is 0.64 ms.
	MinRNRTimer uint8
	// MaxRead is the number of READs and atomics in flight from here, MaxDestRead
	// from the peer, 0..[MaxReads].
	MaxRead, MaxDestRead uint8
	// PathMigState is 0, migrated: there are no alternate paths.
	PathMigState uint8

	Tuning Tuning
}

// checkRanges refuses values out of range among those that mask names.
func (a *Attr) checkRanges(mask AttrMask, from, to State, cfg *Config) error {
	bad := func(m AttrMask, value any, allowed string) error {
		return &AttrError{From: from, To: to, Attr: m, Value: value, Allowed: allowed}
	}
	for _, r := range [...]struct {
		mask       AttrMask
		value, max uint32
	}{
		{MaskTimeout, uint32(a.Timeout), 31},
		{MaskRetryCount, uint32(a.RetryCount), 7},
		{MaskRNRRetry, uint32(a.RNRRetry), 7},
		{MaskMinRNRTimer, uint32(a.MinRNRTimer), 31},
		{MaskPKeyIndex, uint32(a.PKeyIndex), 0},
		{MaskMaxRead, uint32(a.MaxRead), MaxReads},
		{MaskMaxDestRead, uint32(a.MaxDestRead), MaxReads},
		{MaskRecvPSN, uint32(a.RecvPSN), uint32(roce.PSNMask)},
		{MaskSendPSN, uint32(a.SendPSN), uint32(roce.PSNMask)},
		{MaskDestQPN, uint32(a.DestQPN), uint32(roce.QPNMask)},
		{MaskPathMigState, uint32(a.PathMigState), 0},
	} {
		if mask&r.mask != 0 && r.value > r.max {
			return bad(r.mask, r.value, fmt.Sprintf("0 to %d", r.max))
		}
	}
	switch {
	case mask&MaskPort != 0 && a.Port != 1:
		return bad(MaskPort, a.Port, "1, the only port")
	case mask&MaskAltPath != 0:
		return bad(MaskAltPath, "given", "nothing: there are no alternate paths, leave it out")
	case mask&MaskAccess != 0 && a.Access&^RemoteAccess != 0:
		return bad(MaskAccess, a.Access, "any of "+RemoteAccess.String())
	case mask&MaskPathMTU != 0 && (!a.PathMTU.Valid() || a.PathMTU > cfg.MaxMTU):
		return bad(MaskPathMTU, a.PathMTU, fmt.Sprintf("256 to %v bytes on this link", cfg.MaxMTU))
	case mask&MaskDestQPN != 0 && a.DestQPN == 0:
		return bad(MaskDestQPN, a.DestQPN, "1 to 0xffffff")
	case mask&MaskAV != 0:
		if why := a.AV.check(cfg.Local); why != "" {
			return bad(MaskAV, fmt.Sprintf("%v with flow label %#x", a.AV.Addr, a.AV.FlowLabel), why)
		}
	}
	return nil
}

// broadcast is every host at once: a socket would send there.
var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// check says what is allowed instead when the vector cannot be used.
func (v *AddressVector) check(local netip.Addr) string {
	a := v.Addr
	switch {
	case !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a == broadcast || a.Is4In6() || a.Zone() != "":
		return "the address of one host, without zone and not IPv4-mapped"
	case a.Is4() != local.Is4():
		return fmt.Sprintf("an address of the family of the local one, %v", local)
	case v.FlowLabel > 0xFFFFF:
		return "a flow label of at most 0xfffff"
	}
	return ""
}

// merge takes over the attributes that mask names.
func (a *Attr) merge(from *Attr, mask AttrMask) {
	for _, f := range [...]struct {
		mask AttrMask
		set  func()
	}{
		{MaskSQDNotify, func() { a.SQDNotify = from.SQDNotify }},
		{MaskAccess, func() { a.Access = from.Access }},
		{MaskPKeyIndex, func() { a.PKeyIndex = from.PKeyIndex }},
		{MaskPort, func() { a.Port = from.Port }},
		{MaskQKey, func() { a.QKey = from.QKey }},
		{MaskAV, func() { a.AV = from.AV }},
		{MaskPathMTU, func() { a.PathMTU = from.PathMTU }},
		{MaskDestQPN, func() { a.DestQPN = from.DestQPN }},
		{MaskRecvPSN, func() { a.RecvPSN = from.RecvPSN }},
		{MaskSendPSN, func() { a.SendPSN = from.SendPSN }},
		{MaskTimeout, func() { a.Timeout = from.Timeout }},
		{MaskRetryCount, func() { a.RetryCount = from.RetryCount }},
		{MaskRNRRetry, func() { a.RNRRetry = from.RNRRetry }},
		{MaskMinRNRTimer, func() { a.MinRNRTimer = from.MinRNRTimer }},
		{MaskMaxRead, func() { a.MaxRead = from.MaxRead }},
		{MaskMaxDestRead, func() { a.MaxDestRead = from.MaxDestRead }},
	} {
		if mask&f.mask != 0 {
			f.set()
		}
	}
}
