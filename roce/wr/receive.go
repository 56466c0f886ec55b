package wr

import (
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/roce"
)

// ReceiveCompletion is the completion of receive id by the last packet of a SEND
// of n bytes or of a WRITE with immediate. The queue pair and the peer are the
// caller's to fill in.
func ReceiveCompletion(t Traits, p *roce.Packet, id uint64, n uint32) cq.Completion {
	wc := cq.Completion{WRID: id, Opcode: cq.OpRecv, ByteLen: n}
	if t&TraitWrite != 0 {
		wc.Opcode = cq.OpRecvWriteImm
	}
	if t&TraitImm != 0 {
		wc.Flags |= cq.WithImm
		wc.Imm = p.Imm
	}
	if t&TraitInv != 0 {
		wc.Flags |= cq.WithInv
		wc.InvKey = p.InvKey
	}
	if p.SE {
		wc.Flags |= cq.Solicited
	}
	return wc
}
