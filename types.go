package hixl

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/rc"
	"github.com/gohixl/hixl/roce/ud"
	"github.com/gohixl/hixl/roce/wr"
)

// Names of the packages below that applications need; there are their fields and
// methods, which go doc shows by the name given here, such as
// go doc github.com/gohixl/hixl/qp.SendWR.
type (
	// Access is a set of rights on a region, or of a peer: [LocalWrite] and so on,
	// joined by |. See [mr.Access].
	Access = mr.Access
	// SGE names a range of a region in a work request: Addr, Length, LKey. See
	// [mr.SGE]; [Region] makes one by its SGE method.
	SGE = mr.SGE
	// SendWR is a send work request, see [qp.SendWR]: ID, Op, Flags; SGE or Inline,
	// the local memory; RemoteAddr and RKey, the peer's; Imm, InvKey; Compare and
	// SwapAdd of atomics; To of datagrams. Without the flag [Signaled], or SignalAll
	// of [QPConfig], success makes no completion.
	SendWR = qp.SendWR
	// Destination says where a datagram goes: Addr, QPN, QKey, TrafficClass,
	// FlowLabel. See [wr.Destination].
	Destination = wr.Destination
	// Type is the service of a queue pair.
	Type = qp.Type
	// RecvWR is a receive work request: ID, and SGE where the next message goes. A
	// WRITE with immediate takes one too, and none of its memory. See [qp.RecvWR].
	RecvWR = qp.RecvWR
	// Op is the operation of a SendWR, [OpSend] and so on. See [wr.Op].
	Op = wr.Op
	// Flags modify a SendWR: [Fence], [Signaled], [Solicited], [Inline]. See
	// [wr.Flags].
	Flags = wr.Flags
	// Completion tells what became of a work request, see [cq.Completion]: WRID is
	// the request's ID; its Err method is nil, or a *[StatusError]; ByteLen and Imm
	// what was received.
	Completion = cq.Completion
	// Status is how a work request ended, with the verbs number. See [cq.Status].
	Status = cq.Status
	// StatusError is a failed completion as an error, to test for with errors.Is
	// and cq.ErrRemoteAccess, cq.ErrRetryExceeded and the others of package cq.
	StatusError = cq.StatusError
	// PostError says which work request of a list was refused, and why: Index, WRID,
	// Err. See [qp.PostError].
	PostError = qp.PostError
	// Sink takes completions instead of a CQ. See [cq.Sink] for what it may do.
	Sink = cq.Sink
	// State is the state of a queue pair, [StateInit] and so on. See [qp.State].
	State = qp.State
	// Attr holds the attributes of a queue pair. See [qp.Attr].
	Attr = qp.Attr
	// AttrMask says which of them count: qp.MaskState and so on. See [qp.AttrMask].
	AttrMask = qp.AttrMask
	// SRQ is a receive queue that several queue pairs take from. See [qp.SRQ].
	SRQ = qp.SRQ
	// Event is something that happened outside any work request, such as a queue
	// pair that a bad request of the peer has ended: Type, QPN, SRQ, Cause. See
	// [qp.Event].
	Event = qp.Event
	// Stats counts what a NIC has seen: packets and bytes received and sent (RxPackets,
	// TxBytes and so on), those dropped, by reason (Drops, indexed by [Drop]), RC with
	// the sum over its queue pairs, Transport with what the sockets counted.
	Stats = nic.Stats
	// Drop is a reason to drop a packet. Its String names it.
	Drop = nic.Drop
	// Time is a moment on a stepped NIC's clock, in nanoseconds from a start of the
	// owner's choice; 0 means never.
	Time = mono.Time
	// QPStats counts what a queue pair has seen. See [rc.Stats].
	QPStats = rc.Stats
	// DeviceError says that the transport failed for good, and the NIC with it. It
	// unwraps to [ErrDevice] and to what the transport said.
	DeviceError = nic.DeviceError
	// Memory is a span of bytes that a region can be made of. See [device.Memory].
	Memory = device.Memory
	// Progress chooses between latency and processor time, see [Config].
	Progress = nic.Progress
	// QPN is a queue pair number.
	QPN = roce.QPN
	// PSN is a packet sequence number.
	PSN = roce.PSN
)

// Modes of progress: look for packets for some 10 µs before parking, for some
// 100 µs, or not at all. An idle NIC parks in every mode.
const (
	Balanced   = nic.Balanced
	LowLatency = nic.LowLatency
	LowCPU     = nic.LowCPU
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
	OpSend        = wr.OpSend
	OpSendImm     = wr.OpSendImm
	OpSendInv     = wr.OpSendInv
	OpWrite       = wr.OpWrite
	OpWriteImm    = wr.OpWriteImm
	OpRead        = wr.OpRead
	OpCmpSwap     = wr.OpCmpSwap
	OpFetchAdd    = wr.OpFetchAdd
	OpAtomicWrite = wr.OpAtomicWrite
)

// Flags of a SendWR.
const (
	Fence     = wr.Fence
	Signaled  = wr.Signaled
	Solicited = wr.Solicited
	Inline    = wr.Inline
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
	// ErrDevice: the transport failed for good, and the NIC with it.
	ErrDevice = nic.ErrDevice
	// ErrConfig: a configuration value out of its limits.
	ErrConfig = nic.ErrConfig
	// ErrState: the queue pair's state does not allow it.
	ErrState = qp.ErrState
	// ErrSendQueueFull: as many sends are outstanding as the queue holds.
	ErrSendQueueFull = wr.ErrSendQueueFull
	// ErrRecvQueueFull: as many receives wait as the queue holds.
	ErrRecvQueueFull = qp.ErrRecvQueueFull
)

// Word is the inline data of an [OpAtomicWrite] that stores v as a 64-bit number
// in this host's byte order.
func Word(v uint64) [8]byte { return qp.Word(v) }
