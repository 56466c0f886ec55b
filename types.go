package hixl

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/rc"
	"github.com/gohixl/hixl/roce/ud"
	"github.com/gohixl/hixl/roce/wr"
)

// Names of the packages below that applications need.
type (
	// Access is a set of rights on a region, or of a peer.
	Access = mr.Access
	// SGE names a range of a region in a work request.
	SGE = mr.SGE
	// SendWR is a send work request.
	SendWR = qp.SendWR
	// Destination says where a datagram goes.
	Destination = wr.Destination
	// Type is the service of a queue pair.
	Type = qp.Type
	// RecvWR is a receive work request.
	RecvWR = qp.RecvWR
	// Op is the operation of a SendWR.
	Op = rc.Op
	// Flags modify a SendWR.
	Flags = rc.Flags
	// Completion tells what became of a work request.
	Completion = cq.Completion
	// Status is how a work request ended, with the verbs number.
	Status = cq.Status
	// StatusError is a failed completion as an error.
	StatusError = cq.StatusError
	// PostError says which work request of a list was refused.
	PostError = qp.PostError
	// Sink takes completions instead of a CQ.
	Sink = cq.Sink
	// State is the state of a queue pair.
	State = qp.State
	// Attr holds the attributes of a queue pair.
	Attr = qp.Attr
	// AttrMask says which of them count.
	AttrMask = qp.AttrMask
	// SRQ is a receive queue that several queue pairs take from.
	SRQ = qp.SRQ
	// Event is something that happened outside any work request.
	Event = qp.Event
	// Stats counts what a NIC has seen.
	Stats = nic.Stats
	// QPStats counts what a queue pair has seen.
	QPStats = rc.Stats
	// Memory is a span of bytes that a region can be made of.
	Memory = device.Memory
	// QPN is a queue pair number.
	QPN = roce.QPN
	// PSN is a packet sequence number.
	PSN = roce.PSN
)

// Rights.
const (
	LocalWrite       = mr.LocalWrite
	RemoteWrite      = mr.RemoteWrite
	RemoteRead       = mr.RemoteRead
	RemoteAtomic     = mr.RemoteAtomic
	RemoteInvalidate = mr.RemoteInvalidate
	ZeroBased        = mr.ZeroBased
)

// Operations.
const (
	OpSend        = rc.OpSend
	OpSendImm     = rc.OpSendImm
	OpSendInv     = rc.OpSendInv
	OpWrite       = rc.OpWrite
	OpWriteImm    = rc.OpWriteImm
	OpRead        = rc.OpRead
	OpCmpSwap     = rc.OpCmpSwap
	OpFetchAdd    = rc.OpFetchAdd
	OpAtomicWrite = rc.OpAtomicWrite
)

// Flags of a SendWR.
const (
	Fence     = rc.Fence
	Signaled  = rc.Signaled
	Solicited = rc.Solicited
	Inline    = rc.Inline
)

// Services of a queue pair: reliable connection, unreliable connection,
// unreliable datagram.
const (
	RC = qp.RC
	UC = qp.UC
	UD = qp.UD
)

// GRHLen is the length of the area for the network header at the start of every
// receive of a datagram queue pair.
const GRHLen = ud.GRHLen

// States of a queue pair.
const (
	StateReset = qp.Reset
	StateInit  = qp.Init
	StateRTR   = qp.RTR
	StateRTS   = qp.RTS
	StateSQD   = qp.SQD
	StateError = qp.Err
)

// Errors to test for with errors.Is, beside those of package cq for failed work
// and of package mr for keys and rights.
var (
	// ErrClosed: the NIC was closed.
	ErrClosed = nic.ErrClosed
	// ErrConfig: a configuration value out of its limits.
	ErrConfig = nic.ErrConfig
	// ErrState: the queue pair's state does not allow it.
	ErrState = qp.ErrState
	// ErrSendQueueFull: as many sends are outstanding as the queue holds.
	ErrSendQueueFull = rc.ErrSendQueueFull
	// ErrRecvQueueFull: as many receives wait as the queue holds.
	ErrRecvQueueFull = qp.ErrRecvQueueFull
)

// Word is the inline data of an [OpAtomicWrite] that stores v as a 64-bit number
// in this host's byte order.
func Word(v uint64) [8]byte { return qp.Word(v) }
