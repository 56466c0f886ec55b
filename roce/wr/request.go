package wr

import (
	"net/netip"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
)

// Limits of a work request.
const (
	// MaxMessage is the largest message in bytes (§1.9).
	MaxMessage = 1 << 31
	// MaxInline is the largest payload in bytes that is copied when it is
	// posted.
	MaxInline = 256
)

// Op is the kind of a send work request.
type Op uint8

// The operations. All of them exist on a reliable connection, SENDs and WRITEs
// on an unreliable one, SEND without and with immediate on a datagram queue pair.
const (
	OpSend Op = iota
	OpSendImm
	OpSendInv
	OpWrite
	OpWriteImm
	OpRead
	OpCmpSwap
	OpFetchAdd
	OpAtomicWrite
	NumOps // how many there are
)

// String returns the verbs name of the operation.
func (o Op) String() string {
	if int(o) < len(opTable) {
		return opTable[o].name
	}
	return "unknown operation"
}

// Completion returns the opcode that the operation's completion carries.
func (o Op) Completion() cq.Opcode { return opTable[o].wc }

// TakesRead reports whether the operation counts against the initiator depth
// and is completed only by its own response (§3.7, §3.9).
func (o Op) TakesRead() bool { return opTable[o].read }

// Atomic reports whether the operation is one on a single 64-bit word.
func (o Op) Atomic() bool { return o >= OpCmpSwap && o < NumOps }

type opInfo struct {
	name string
	wc   cq.Opcode
	read bool
}

var opTable = [NumOps]opInfo{
	OpSend:        {"SEND", cq.OpSend, false},
	OpSendImm:     {"SEND with immediate", cq.OpSend, false},
	OpSendInv:     {"SEND with invalidate", cq.OpSend, false},
	OpWrite:       {"WRITE", cq.OpWrite, false},
	OpWriteImm:    {"WRITE with immediate", cq.OpWrite, false},
	OpRead:        {"READ", cq.OpRead, true},
	OpCmpSwap:     {"CMP_SWAP", cq.OpCompSwap, true},
	OpFetchAdd:    {"FETCH_ADD", cq.OpFetchAdd, true},
	OpAtomicWrite: {"ATOMIC WRITE", cq.OpAtomicWrite, true},
}

// Flags modify a send work request.
type Flags uint8

// Send flags, with the verbs values (§3.16).
const (
	Fence     Flags = 1
	Signaled  Flags = 2
	Solicited Flags = 4
	Inline    Flags = 8
)

// Destination says where a datagram goes: the peer's address, queue pair and
// Q_Key, and how the packet is marked (an address handle of verbs, §5.1).
type Destination struct {
	Addr         netip.Addr
	QPN          roce.QPN
	QKey         uint32
	TrafficClass uint8
	FlowLabel    uint32
}

// Request is a send work request whose local memory has been resolved. Post
// copies it; nothing of it is kept.
type Request struct {
	ID    uint64
	Op    Op
	Flags Flags
	// Spans is the local memory, at most MaxSendSGE of them: the source, or for
	// READ and atomics the destination. Inline data takes their place when the
	// Inline flag is set, and for ATOMIC WRITE, whose 8 bytes are always inline.
	Spans  []mr.Span
	Inline []byte
	// RemoteAddr and RKey name the peer's memory.
	RemoteAddr uint64
	RKey       uint32
	// Imm is the immediate, InvKey the peer's key to invalidate.
	Imm, InvKey uint32
	// To is the destination of a datagram; connections ignore it.
	To Destination
	// Compare and SwapAdd are the operands of atomics.
	Compare, SwapAdd uint64
}

// Length is the number of payload bytes, and whether they are inline.
func (r *Request) Length() (n uint64, inline bool) {
	if r.Flags&Inline != 0 || r.Op == OpAtomicWrite {
		return uint64(len(r.Inline)), true
	}
	return SpanBytes(r.Spans), false
}

// Receive is a receive work request.
type Receive struct {
	ID    uint64
	Spans []mr.Span
}

// ReceiveSource gives out receive work requests in order: a queue pair's own
// receive queue, or one shared by many.
type ReceiveSource interface {
	// Take removes the oldest receive, copies it to r (appending its spans to
	// r.Spans[:0]) and reports whether there was one.
	Take(r *Receive) bool
}
