package hixl

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Errors of a context's work, to test for with errors.Is, beside those of
// connections, of package cq (failed work) and of package mr (bounds and rights).
var (
	// ErrStale: the region is gone, or its peer is another incarnation of itself.
	ErrStale = errors.New("hixl: region is stale")
	// ErrNoRegion: the peer has published no region of this name.
	ErrNoRegion = errors.New("hixl: no such region")
	// ErrPeerRestarted: the peer is another incarnation than before.
	ErrPeerRestarted = errors.New("hixl: peer has restarted")
	// ErrPeerDown: the peer is not connected. Retriable.
	ErrPeerDown = errors.New("hixl: peer is not connected")
	// ErrNotDialed: the peer dialed this side and only it can come back, see
	// [Peer.ListenAddress].
	ErrNotDialed = errors.New("hixl: the peer dials this side, not the reverse")
	// ErrPeerRefused: the peer refuses to be one; the error says why.
	ErrPeerRefused = errors.New("hixl: peer refuses")
	// ErrCanceled: the transfer was given up by Cancel or the end of its context.
	ErrCanceled = errors.New("hixl: transfer was canceled")
	// ErrUnfenced: bytes of the transfer may still land, see [Handle.WaitFenced].
	ErrUnfenced = errors.New("hixl: not fenced yet")
	// ErrAborted: the connection was ended to fence another transfer. Retriable.
	ErrAborted = errors.New("hixl: connection was closed to fence another transfer")
	// ErrNotifyFull: the peer has no room for a notification; nothing was sent.
	// Retriable.
	ErrNotifyFull = errors.New("hixl: the peer's notification queue is full")
	// ErrBusy: too much is queued for this peer; nothing was posted. Retriable.
	ErrBusy = errors.New("hixl: too much is queued")
	// ErrStream: something before it on the same stream has failed; it was not begun.
	ErrStream = errors.New("hixl: the stream has failed")
	// ErrTooManyPeers: the context knows as many peers as it may.
	ErrTooManyPeers = errors.New("hixl: too many peers")
	// ErrStepped: nobody would drive a stepped NIC while a call waits.
	ErrStepped = errors.New("hixl: a stepped NIC does not wait")
	// ErrTransfer: a transfer that nobody can execute, such as an atomic of two
	// words.
	ErrTransfer = errors.New("hixl: bad transfer")
)

// TransferError is a transfer that failed, or did not end in time. It unwraps to
// Err, and to [ErrUnfenced] when bytes may still land.
type TransferError struct {
	Op   TransferOp
	Peer netip.AddrPort
	// Region is the name of the remote region, or what identifies it.
	Region string
	// Generation is that of the connection which carried it, 0 for none.
	Generation uint32
	// Arrived of Total bytes are known to have arrived: acknowledged by the peer,
	// or of reads, in local memory. More may have.
	Arrived, Total uint64
	// Retriable says that the request itself is sound: the connection is to
	// blame. Nothing is ever repeated without the caller.
	Retriable bool
	// Executed says that an atomic, immediate or notification may have taken
	// effect, so that it must not be repeated blindly.
	Executed bool
	// Fenced says that no byte lands any more, here or there.
	Fenced bool
	// Handle is the transfer, to wait for the fence or for its end.
	Handle *Handle
	Err    error
}

func (e *TransferError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "hixl: %v", e.Op)
	if e.Region != "" {
		fmt.Fprintf(&b, " of region %s", e.Region)
	}
	fmt.Fprintf(&b, " at peer %v", e.Peer)
	if e.Generation > 0 {
		fmt.Fprintf(&b, " (connection %d)", e.Generation)
	}
	fmt.Fprintf(&b, ": %v; %d of %d bytes are known to have arrived", e.Err, e.Arrived, e.Total)
	switch {
	case !e.Fenced:
		b.WriteString("; more may still land: WaitFenced before the memory is used for something else")
	case e.Executed:
		b.WriteString("; it may have taken effect, so look before you repeat it")
	case e.Retriable:
		b.WriteString("; it can be tried again")
	}
	return b.String()
}

// Unwrap returns the reason, and [ErrUnfenced] unless it is fenced.
func (e *TransferError) Unwrap() []error {
	if e.Fenced {
		return []error{e.Err}
	}
	return []error{e.Err, ErrUnfenced}
}

// RegionError is a region that cannot be used as asked. It unwraps to Err.
type RegionError struct {
	Peer netip.AddrPort // zero for a local region
	// Region is its name, or what identifies it.
	Region string
	Op     string
	// Off and Len are what was asked for, Size is the region's.
	Off, Len, Size uint64
	// Err is [ErrStale], [ErrNoRegion], mr.ErrBounds, mr.ErrPermission, or
	// mr.ErrPD for a region of another context.
	Err error
}

func (e *RegionError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "hixl: %s", e.Op)
	if e.Region != "" {
		fmt.Fprintf(&b, " of region %s", e.Region)
	}
	if e.Peer.IsValid() {
		fmt.Fprintf(&b, " at peer %v", e.Peer)
	}
	if e.Size > 0 || e.Len > 0 {
		fmt.Fprintf(&b, ", %d bytes at offset %d of %d", e.Len, e.Off, e.Size)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	switch {
	case errors.Is(e.Err, ErrPeerRestarted):
		b.WriteString(": its memory is new; Refresh it, or get a new descriptor")
	case errors.Is(e.Err, ErrStale):
		b.WriteString(": look it up again, or get a new descriptor")
	case errors.Is(e.Err, ErrNoRegion):
		b.WriteString(": Publish it there, or check the name")
	}
	return b.String()
}

// Unwrap returns the reason.
func (e *RegionError) Unwrap() error { return e.Err }

// PeerError is a peer that cannot be reached. It unwraps to Err, and to
// [ErrPeerDown].
type PeerError struct {
	Peer netip.AddrPort
	// Generation is that of the last connection, 0 if there was none.
	Generation uint32
	Err        error
}

func (e *PeerError) Error() string {
	if e.Generation == 0 {
		return fmt.Sprintf("hixl: peer %v: %v", e.Peer, e.Err)
	}
	return fmt.Sprintf("hixl: peer %v, connection %d: %v", e.Peer, e.Generation, e.Err)
}

// Unwrap returns the reason, and [ErrPeerDown].
func (e *PeerError) Unwrap() []error { return []error{e.Err, ErrPeerDown} }

// downError is a reason for [ErrPeerDown].
type downError struct{ why string }

func newDown(why string) error { return &downError{why} }

func (e *downError) Error() string { return "hixl: " + e.why }

func (e *downError) Unwrap() error { return ErrPeerDown }
