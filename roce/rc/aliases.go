package rc

import "github.com/gohixl/hixl/roce/wr"

// The types that an engine exchanges with its owner, of package wr.
type (
	// Op is the kind of a send work request.
	Op = wr.Op
	// Flags modify one.
	Flags = wr.Flags
	// Request is one.
	Request = wr.Request
	// Receive is a receive work request.
	Receive = wr.Receive
	// ReceiveSource gives them out.
	ReceiveSource = wr.ReceiveSource
	// Batch collects packets to send.
	Batch = wr.Batch
	// Out is one of them.
	Out = wr.Out
	// Work is what an accepted packet asks its owner to do with memory.
	Work = wr.Work
	// WorkKind says what.
	WorkKind = wr.WorkKind
	// Outcome says how that ended.
	Outcome = wr.Outcome
)

// The operations of a reliable connection.
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
	numOps        = wr.NumOps
)

// Send flags.
const (
	Fence     = wr.Fence
	Signaled  = wr.Signaled
	Solicited = wr.Solicited
	Inline    = wr.Inline
)

// Kinds of work, and how it ended.
const (
	WorkNone   = wr.WorkNone
	WorkPlace  = wr.WorkPlace
	WorkAtomic = wr.WorkAtomic
	Done       = wr.Done
	Revoked    = wr.Revoked
	Failed     = wr.Failed
)

// NewBatch returns a batch of up to packets packets and maxBytes bytes.
func NewBatch(packets, maxBytes int) *Batch { return wr.NewBatch(packets, maxBytes) }
