package xdp

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/roce"
)

// Verdicts of an XDP program.
const (
	xdpPass     = 2
	xdpRedirect = 4
)

// Offsets in struct xdp_md.
const (
	mdData    = 0
	mdDataEnd = 4
	mdQueue   = 16
)

const programName = "hixl_roce"

// program gives whole UDP datagrams to port 4791 of the addresses to the socket of
// the queue they came on, and all else to the kernel, as well as what comes on a
// queue without socket. multibuf says that it takes frames in several pieces; all
// that it looks at is in the first.
func program(sockets *ebpf.Map, addrs []netip.Addr, multibuf bool) *ebpf.ProgramSpec {
	p := &assembler{}
	p.add(
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, mdData, asm.Word),
		asm.LoadMem(asm.R3, asm.R6, mdDataEnd, asm.Word),
	)
	p.bounds(etherLen)
	p.add(asm.LoadMem(asm.R5, asm.R2, 12, asm.Half))
	p.tag("untagged1")
	p.tag("untagged2")
	p.add(
		asm.JEq.Imm(asm.R5, be16(etherIPv6), "ipv6"),
		asm.JNE.Imm(asm.R5, be16(etherIPv4), "pass"),
	)
	p.ipv4(addrs)
	p.ipv6(addrs)
	p.add(
		asm.LoadMem(asm.R2, asm.R6, mdQueue, asm.Word).WithSymbol("steer"),
		asm.LoadMapPtr(asm.R1, sockets.FD()),
		asm.Mov.Imm(asm.R3, xdpPass), // when the queue has no socket
		asm.FnRedirectMap.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, xdpPass).WithSymbol("pass"),
		asm.Return(),
	)
	spec := &ebpf.ProgramSpec{
		Name: programName, Type: ebpf.XDP, AttachType: ebpf.AttachXDP, License: "Apache-2.0", Instructions: p.ins,
	}
	if multibuf {
		spec.Flags = unix.BPF_F_XDP_HAS_FRAGS
	}
	return spec
}

// assembler collects instructions. R6 is the context, R2 the place 14 bytes before
// the network header, R3 the end of the data, R5 the EtherType; R0 and R4 are free.
type assembler struct {
	ins   asm.Instructions
	label string // of the next instruction
}

func (p *assembler) add(ins ...asm.Instruction) {
	if p.label != "" {
		ins[0] = ins[0].WithSymbol(p.label)
		p.label = ""
	}
	p.ins = append(p.ins, ins...)
}

// bounds passes packets that have fewer than n bytes from R2 on.
func (p *assembler) bounds(n int32) {
	p.add(
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, n),
		asm.JGT.Reg(asm.R4, asm.R3, "pass"),
	)
}

// tag skips a VLAN tag, if there is one; label is for its own use.
func (p *assembler) tag(label string) {
	p.add(
		asm.JEq.Imm(asm.R5, be16(etherVLAN), label+"tag"),
		asm.JNE.Imm(asm.R5, be16(etherQinQ), label),
	)
	p.label = label + "tag"
	p.add(asm.Add.Imm(asm.R2, tagLen))
	p.bounds(etherLen)
	p.add(asm.LoadMem(asm.R5, asm.R2, 12, asm.Half))
	p.label = label
}

const etherQinQ = 0x88A8

// field passes packets whose byte or half-word at offset at of the network header
// is not v.
func (p *assembler) field(at int16, size asm.Size, v int32) {
	p.add(
		asm.LoadMem(asm.R0, asm.R2, etherLen+at, size),
		asm.JNE.Imm(asm.R0, v, "pass"),
	)
}

func (p *assembler) ipv4(addrs []netip.Addr) {
	p.bounds(etherLen + ipv4Len + udpLen)
	p.field(0, asm.Byte, 0x45) // no options
	p.field(9, asm.Byte, protoUDP)
	p.add( // no fragment: neither more to come nor an offset
		asm.LoadMem(asm.R0, asm.R2, etherLen+6, asm.Half),
		asm.And.Imm(asm.R0, be16(0x3FFF)),
		asm.JNE.Imm(asm.R0, 0, "pass"),
	)
	p.field(ipv4Len+2, asm.Half, be16(roce.Port))
	p.add(asm.LoadMem(asm.R0, asm.R2, etherLen+16, asm.Word))
	for _, a := range addrs {
		if a.Is4() {
			b := a.As4()
			p.add(asm.JEq.Imm32(asm.R0, word(b[:]), "steer"))
		}
	}
	p.add(asm.Ja.Label("pass"))
}

func (p *assembler) ipv6(addrs []netip.Addr) {
	p.label = "ipv6"
	p.bounds(etherLen + ipv6Len + udpLen)
	p.field(6, asm.Byte, protoUDP) // no extension headers, thus no fragment
	p.field(ipv6Len+2, asm.Half, be16(roce.Port))
	for i, a := range addrs {
		if !a.Is6() {
			continue
		}
		b, next := a.As16(), fmt.Sprint("not", i)
		for w := int16(0); w < 16; w += 4 {
			p.add(
				asm.LoadMem(asm.R0, asm.R2, etherLen+24+w, asm.Word),
				asm.JNE.Imm32(asm.R0, word(b[w:]), next),
			)
		}
		p.add(asm.Ja.Label("steer"))
		p.label = next
	}
	p.add(asm.Ja.Label("pass"))
}

// be16 is v as a half-word load finds it.
func be16(v uint16) int32 {
	return int32(binary.NativeEndian.Uint16(be.AppendUint16(nil, v)))
}

// word is four bytes as a word load finds them.
func word(b []byte) int32 { return int32(binary.NativeEndian.Uint32(b)) }
