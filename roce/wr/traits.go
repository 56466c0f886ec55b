package wr

import "github.com/gohixl/hixl/roce"

// Traits describe a packet of a SEND or WRITE. Other packets have none.
type Traits uint8

// The traits.
const (
	TraitSend Traits = 1 << iota
	TraitWrite
	TraitFirst // begins a message
	TraitLast  // ends one
	TraitImm
	TraitInv
)

var messageTraits = [32]Traits{
	roce.OpSendFirst:    TraitSend | TraitFirst,
	roce.OpSendMiddle:   TraitSend,
	roce.OpSendLast:     TraitSend | TraitLast,
	roce.OpSendLastImm:  TraitSend | TraitLast | TraitImm,
	roce.OpSendOnly:     TraitSend | TraitFirst | TraitLast,
	roce.OpSendOnlyImm:  TraitSend | TraitFirst | TraitLast | TraitImm,
	roce.OpSendLastInv:  TraitSend | TraitLast | TraitInv,
	roce.OpSendOnlyInv:  TraitSend | TraitFirst | TraitLast | TraitInv,
	roce.OpWriteFirst:   TraitWrite | TraitFirst,
	roce.OpWriteMiddle:  TraitWrite,
	roce.OpWriteLast:    TraitWrite | TraitLast,
	roce.OpWriteLastImm: TraitWrite | TraitLast | TraitImm,
	roce.OpWriteOnly:    TraitWrite | TraitFirst | TraitLast,
	roce.OpWriteOnlyImm: TraitWrite | TraitFirst | TraitLast | TraitImm,
}

// TraitsOf returns the traits of an opcode, by its low five bits: those of RC,
// UC and XRC are the same.
func TraitsOf(op roce.Opcode) Traits { return messageTraits[op&31] }

// TakesReceive reports whether the packet needs a receive work request that its
// message does not hold yet (§4.6, §4.7).
func (t Traits) TakesReceive() bool {
	if t&TraitSend != 0 {
		return t&TraitFirst != 0
	}
	return t&TraitImm != 0
}
