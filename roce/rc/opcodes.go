package rc

import "github.com/gohixl/hixl/roce"

// opcodes are the packets of an operation: of a message's first, middle, last
// and only packet. READs and atomics are one packet.
type opcodes struct{ first, middle, last, only roce.Opcode }

var opcodesOf = [numOps]opcodes{
	OpSend:        {roce.OpSendFirst, roce.OpSendMiddle, roce.OpSendLast, roce.OpSendOnly},
	OpSendImm:     {roce.OpSendFirst, roce.OpSendMiddle, roce.OpSendLastImm, roce.OpSendOnlyImm},
	OpSendInv:     {roce.OpSendFirst, roce.OpSendMiddle, roce.OpSendLastInv, roce.OpSendOnlyInv},
	OpWrite:       {roce.OpWriteFirst, roce.OpWriteMiddle, roce.OpWriteLast, roce.OpWriteOnly},
	OpWriteImm:    {roce.OpWriteFirst, roce.OpWriteMiddle, roce.OpWriteLastImm, roce.OpWriteOnlyImm},
	OpRead:        {only: roce.OpReadRequest},
	OpCmpSwap:     {only: roce.OpCmpSwap},
	OpFetchAdd:    {only: roce.OpFetchAdd},
	OpAtomicWrite: {only: roce.OpAtomicWrite},
}
