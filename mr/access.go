package mr

import (
	"fmt"
	"strings"
)

// Access is a set of rights on a region. Values are those of verbs (§6), except
// RemoteInvalidate, which verbs leaves implied.
type Access uint32

// The rights. Reading locally is always allowed.
const (
	// LocalWrite lets receives, READ results and atomic results land here.
	LocalWrite Access = 0x1
	// RemoteWrite lets the peer write; needs LocalWrite.
	RemoteWrite Access = 0x2
	// RemoteRead lets the peer read.
	RemoteRead Access = 0x4
	// RemoteAtomic lets the peer execute atomics; needs LocalWrite.
	RemoteAtomic Access = 0x8
	// MWBind is refused: there are no memory windows.
	MWBind Access = 0x10
	// ZeroBased makes remote addresses count from 0 at the region's start.
	ZeroBased Access = 0x20
	// OnDemand is refused: there is no on-demand paging to ask for.
	OnDemand Access = 0x40
	// HugeTLB is a hint and changes nothing.
	HugeTLB Access = 0x80
	// FlushGlobal is refused: FLUSH is not executed.
	FlushGlobal Access = 0x100
	// FlushPersistent is refused: no memory here is persistent.
	FlushPersistent Access = 0x200
	// RemoteInvalidate lets the peer's SEND with invalidate end remote access.
	RemoteInvalidate Access = 1 << 16
	// RelaxedOrdering is a hint and changes nothing.
	RelaxedOrdering Access = 1 << 20
)

// Supported is the set of rights and hints that Register takes.
const Supported = LocalWrite | RemoteWrite | RemoteRead | RemoteAtomic | ZeroBased | HugeTLB |
	RemoteInvalidate | RelaxedOrdering

// accessNames in order of value.
var accessNames = []struct {
	bit  Access
	name string
}{
	{LocalWrite, "LOCAL_WRITE"},
	{RemoteWrite, "REMOTE_WRITE"},
	{RemoteRead, "REMOTE_READ"},
	{RemoteAtomic, "REMOTE_ATOMIC"},
	{MWBind, "MW_BIND"},
	{ZeroBased, "ZERO_BASED"},
	{OnDemand, "ON_DEMAND"},
	{HugeTLB, "HUGETLB"},
	{FlushGlobal, "FLUSH_GLOBAL"},
	{FlushPersistent, "FLUSH_PERSISTENT"},
	{RemoteInvalidate, "REMOTE_INVALIDATE"},
	{RelaxedOrdering, "RELAXED_ORDERING"},
}

// String lists the rights by their verbs names, "none" for the empty set.
func (a Access) String() string {
	if a == 0 {
		return "none"
	}
	var names []string
	for _, n := range accessNames {
		if a&n.bit != 0 {
			names = append(names, n.name)
			a &^= n.bit
		}
	}
	if a != 0 {
		names = append(names, fmt.Sprintf("%#x", uint32(a)))
	}
	return strings.Join(names, "|")
}

// check refuses what cannot be granted.
func (a Access) check() error {
	if bad := a &^ Supported; bad != 0 {
		return &RegisterError{
			What: "access " + bad.String(), Allowed: "any of " + Supported.String(),
			Advice: "leave it out", sentinel: ErrAccessFlags,
		}
	}
	if a&(RemoteWrite|RemoteAtomic) != 0 && a&LocalWrite == 0 { // §6
		return &RegisterError{
			What: "access " + a.String(), Allowed: "REMOTE_WRITE and REMOTE_ATOMIC only together with LOCAL_WRITE",
			Advice: "add LocalWrite", sentinel: ErrAccessFlags,
		}
	}
	return nil
}
