package hostiletest

// Opcodes of the RC class that the model speaks of by name (§1.9).
const (
	opSendFirst, opSendMiddle, opSendLast, opSendLastImm, opSendOnly, opSendOnlyImm       = 0, 1, 2, 3, 4, 5
	opWriteFirst, opWriteMiddle, opWriteLast, opWriteLastImm, opWriteOnly, opWriteOnlyImm = 6, 7, 8, 9, 10, 11
	opRead, opReadFirst, opReadMiddle, opReadLast, opReadOnly, opAck, opAtomicAck         = 12, 13, 14, 15, 16, 17, 18
	opCmpSwap, opFetchAdd, opSendLastInv, opSendOnlyInv, opFlush, opAtomicWrite           = 0x13, 0x14, 0x16, 0x17, 0x1C, 0x1D
)

// Syndromes (§1.8).
const (
	synACK, synRNR                                     byte = 0x1F, 0x20
	nakSequence, nakInvalid, nakAccess, nakOperational byte = 0x60, 0x61, 0x62, 0x63
)

// kind is what an opcode does to a message.
type kind struct{ send, write, first, last, imm, inv bool }

func kindOf(op byte) (k kind) {
	switch op {
	case opSendFirst, opSendMiddle, opSendLast, opSendLastImm, opSendOnly, opSendOnlyImm, opSendLastInv, opSendOnlyInv:
		k.send = true
	case opWriteFirst, opWriteMiddle, opWriteLast, opWriteLastImm, opWriteOnly, opWriteOnlyImm:
		k.write = true
	}
	switch op {
	case opSendOnly, opSendOnlyImm, opSendOnlyInv, opWriteOnly, opWriteOnlyImm:
		k.first, k.last = true, true
	case opSendFirst, opWriteFirst:
		k.first = true
	case opSendLast, opSendLastImm, opSendLastInv, opWriteLast, opWriteLastImm:
		k.last = true
	}
	k.imm = op == opSendLastImm || op == opSendOnlyImm || op == opWriteLastImm || op == opWriteOnlyImm
	k.inv = op == opSendLastInv || op == opSendOnlyInv
	return k
}

func (k kind) message() bool { return k.send || k.write }

// takes reports whether the packet needs a receive of its own (§4.6, §4.7).
func (k kind) takes() bool { return k.send && k.first || k.write && k.imm }
