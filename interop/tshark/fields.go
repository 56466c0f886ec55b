package tshark

import (
	"encoding/binary"

	"github.com/gohixl/hixl/roce"
)

// field is one that tshark names, and its value here. With has it stands in one of
// those extension headers.
type field struct {
	name  string
	has   roce.Hdr
	value func(p *roce.Packet, f *roce.Frame) uint64
}

// bytes are the fields that tshark shows as bytes, in hexadecimal without a mark.
var bytes = map[string]bool{"infiniband.immdt": true, "infiniband.ieth": true}

// mayLack are fields that tshark leaves out at times: the ICRC of a SEND without
// payload, or with one that it takes for another protocol's.
var mayLack = map[string]bool{"infiniband.invariant.crc": true}

// in reports whether the packet has the field.
func (f *field) in(p *roce.Packet) bool {
	for bit := roce.Hdr(1); bit != 0; bit <<= 1 {
		if f.has&bit != 0 && p.Opcode.Has(bit) {
			return true
		}
	}
	return f.has == 0
}

// unknown are opcodes that tshark 4.0 does not know: it shows their BTH alone.
var unknown = map[roce.Opcode]bool{roce.OpFlush: true, roce.OpAtomicWrite: true, roce.OpCNP: true}

func number(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// opcodeField is the opcode's place in fields.
const opcodeField = 1

// fields are compared for every packet. An atomic's address and key have the
// names of RETH's.
var fields = []field{
	{"udp.srcport", 0, func(_ *roce.Packet, f *roce.Frame) uint64 { return uint64(f.SrcPort) }},
	{"infiniband.bth.opcode", 0, func(p *roce.Packet, _ *roce.Frame) uint64 { return uint64(p.Opcode) }},
	{"infiniband.bth.se", 0, func(p *roce.Packet, _ *roce.Frame) uint64 { return number(p.SE) }},
	{"infiniband.bth.m", 0, func(p *roce.Packet, _ *roce.Frame) uint64 { return number(p.Mig) }},
	{"infiniband.bth.padcnt", 0, func(p *roce.Packet, _ *roce.Frame) uint64 { return uint64(p.Pad) }},
	{"infiniband.bth.tver", 0, func(p *roce.Packet, _ *roce.Frame) uint64 { return uint64(p.TVer) }},
	{"infiniband.bth.p_key", 0, func(p *roce.Packet, _ *roce.Frame) uint64 { return uint64(p.PKey) }},
	{"infiniband.bth.destqp", 0, func(p *roce.Packet, _ *roce.Frame) uint64 { return uint64(p.DestQP) }},
	{"infiniband.bth.a", 0, func(p *roce.Packet, _ *roce.Frame) uint64 { return number(p.AckReq) }},
	{"infiniband.bth.psn", 0, func(p *roce.Packet, _ *roce.Frame) uint64 { return uint64(p.PSN) }},
	{"infiniband.deth.q_key", roce.HasDETH, func(p *roce.Packet, _ *roce.Frame) uint64 { return uint64(p.DETH.QKey) }},
	{"infiniband.deth.srcqp", roce.HasDETH, func(p *roce.Packet, _ *roce.Frame) uint64 { return uint64(p.DETH.SrcQP) }},
	{"infiniband.reth.va", roce.HasRETH | roce.HasAtomicETH, func(p *roce.Packet, _ *roce.Frame) uint64 {
		if p.Opcode.Has(roce.HasRETH) {
			return p.RETH.VA
		}
		return p.Atomic.VA
	}},
	{"infiniband.reth.r_key", roce.HasRETH | roce.HasAtomicETH, func(p *roce.Packet, _ *roce.Frame) uint64 {
		if p.Opcode.Has(roce.HasRETH) {
			return uint64(p.RETH.RKey)
		}
		return uint64(p.Atomic.RKey)
	}},
	{"infiniband.reth.dmalen", roce.HasRETH, func(p *roce.Packet, _ *roce.Frame) uint64 { return uint64(p.RETH.Len) }},
	{"infiniband.atomiceth.swapdt", roce.HasAtomicETH, func(p *roce.Packet, _ *roce.Frame) uint64 { return p.Atomic.SwapAdd }},
	{"infiniband.atomiceth.cmpdt", roce.HasAtomicETH, func(p *roce.Packet, _ *roce.Frame) uint64 { return p.Atomic.Compare }},
	{"infiniband.aeth.syndrome", roce.HasAETH, func(p *roce.Packet, _ *roce.Frame) uint64 { return uint64(p.AETH.Syndrome) }},
	{"infiniband.aeth.msn", roce.HasAETH, func(p *roce.Packet, _ *roce.Frame) uint64 { return uint64(p.AETH.MSN) }},
	{"infiniband.atomicacketh.origremdt", roce.HasAtomicAck, func(p *roce.Packet, _ *roce.Frame) uint64 { return p.AtomicAck }},
	{"infiniband.immdt", roce.HasImm, func(p *roce.Packet, _ *roce.Frame) uint64 { return uint64(p.Imm) }},
	{"infiniband.ieth", roce.HasIETH, func(p *roce.Packet, _ *roce.Frame) uint64 { return uint64(p.InvKey) }},
	{"infiniband.invariant.crc", 0, func(_ *roce.Packet, f *roce.Frame) uint64 {
		return uint64(binary.BigEndian.Uint32(f.Payload[len(f.Payload)-roce.ICRCLen:]))
	}},
}
