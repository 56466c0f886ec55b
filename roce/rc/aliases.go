package rc

import "github.com/gohixl/hixl/roce/wr"

// The types that an engine exchanges with its owner; see package wr.
type (
	Op            = wr.Op
	Flags         = wr.Flags
	Request       = wr.Request
	Receive       = wr.Receive
	ReceiveSource = wr.ReceiveSource
	Batch         = wr.Batch
	Out           = wr.Out
	Work          = wr.Work
	WorkKind      = wr.WorkKind
	Outcome       = wr.Outcome
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
