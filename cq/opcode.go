package cq

import "fmt"

// Opcode says what kind of work completed. Numbers are those of verbs
// (ibv_wc_opcode, §3.16).
type Opcode uint8

// The opcodes. Those from OpRecv on are of receive requests.
const (
	OpSend         Opcode = 0
	OpWrite        Opcode = 1
	OpRead         Opcode = 2
	OpCompSwap     Opcode = 3
	OpFetchAdd     Opcode = 4
	OpBindMW       Opcode = 5 // never made here
	OpLocalInv     Opcode = 6
	OpTSO          Opcode = 7 // never made here
	OpFlush        Opcode = 8
	OpAtomicWrite  Opcode = 9
	OpRecv         Opcode = 128
	OpRecvWriteImm Opcode = 129
)

// IsRecv reports whether a receive request completed.
func (o Opcode) IsRecv() bool { return o >= OpRecv }

// hasRemoteAddress reports whether the request named a place at the peer.
func (o Opcode) hasRemoteAddress() bool {
	switch o {
	case OpWrite, OpRead, OpCompSwap, OpFetchAdd, OpFlush, OpAtomicWrite:
		return true
	default:
		return false
	}
}

// String is the field's name, such as "WRITE" or "RECV".
func (o Opcode) String() string {
	switch o {
	case OpSend:
		return "SEND"
	case OpWrite:
		return "WRITE"
	case OpRead:
		return "READ"
	case OpCompSwap:
		return "CMP_SWAP"
	case OpFetchAdd:
		return "FETCH_ADD"
	case OpBindMW:
		return "BIND_MW"
	case OpLocalInv:
		return "LOCAL_INV"
	case OpTSO:
		return "TSO"
	case OpFlush:
		return "FLUSH"
	case OpAtomicWrite:
		return "ATOMIC_WRITE"
	case OpRecv:
		return "RECV"
	case OpRecvWriteImm:
		return "RECV_WRITE_IMM"
	default:
		return fmt.Sprintf("opcode %d", uint8(o))
	}
}

// Flags tell what else a completion carries. The numbers are ours (§3.16: those
// of verbs differ between implementations).
type Flags uint8

// The flags.
const (
	// GRH: the first 40 bytes of a UD receive are the routing header (§1.10).
	GRH Flags = 1
	// WithImm: Imm is valid.
	WithImm Flags = 2
	// WithInv: the peer invalidated InvKey.
	WithInv Flags = 4
	// Solicited: the peer asked for an event.
	Solicited Flags = 8
)

// Has reports whether all of want are set.
func (f Flags) Has(want Flags) bool { return f&want == want }
