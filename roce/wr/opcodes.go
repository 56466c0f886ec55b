package wr

import "github.com/gohixl/hixl/roce"

// opcodes are the packets of an operation: of a message's first, middle, last
// and only packet. READs and atomics are one packet.
type opcodes struct{ first, middle, last, only roce.Opcode }

var opcodesOf = [NumOps]opcodes{
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

// Packet is the opcode, in the RC class, of a packet of the operation that is or
// is not the first and the last of its message (§1.9).
func (o Op) Packet(first, last bool) roce.Opcode {
	t := &opcodesOf[o]
	switch {
	case o.TakesRead() || first && last:
		return t.only
	case last:
		return t.last
	case first:
		return t.first
	default:
		return t.middle
	}
}
