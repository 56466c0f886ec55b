package roce

import "strconv"

const hexDigits = "0123456789abcdef"

// String describes the packet in one line, as
//
//	RC WRITE_ONLY qp 0x21 psn 0x001000 ackreq pad 3 RETH va 0x7f00 rkey 0x12e5 len 13 payload 13
func (p *Packet) String() string { return string(p.AppendString(nil)) }

// AppendString appends what String returns.
func (p *Packet) AppendString(b []byte) []byte {
	b = append(b, p.Opcode.String()...)
	b = appendHex(b, " qp ", uint64(p.DestQP))
	b = append(b, " psn 0x"...)
	for shift := 20; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[p.PSN>>shift&0xF])
	}
	b = p.appendFlags(b)
	b = p.appendExt(b)
	if n := len(p.Payload); n > 0 {
		b = appendDec(b, " payload ", uint64(n))
	}
	return b
}

// appendFlags appends the fields of the BTH that differ from the usual.
func (p *Packet) appendFlags(b []byte) []byte {
	for _, f := range [...]struct {
		set  bool
		name string
	}{
		{p.AckReq, " ackreq"},
		{p.SE, " se"},
		{p.FECN, " fecn"},
		{p.BECN, " becn"},
	} {
		if f.set {
			b = append(b, f.name...)
		}
	}
	if p.Pad != 0 {
		b = appendDec(b, " pad ", uint64(p.Pad))
	}
	if p.PKey != PKeyDefault {
		b = appendHex(b, " pkey ", uint64(p.PKey))
	}
	return b
}

func (p *Packet) appendExt(b []byte) []byte {
	has := p.Opcode.Headers()
	if has&HasDETH != 0 {
		b = appendHex(b, " DETH qkey ", uint64(p.DETH.QKey))
		b = appendHex(b, " srcqp ", uint64(p.DETH.SrcQP))
	}
	if has&HasXRCETH != 0 {
		b = appendHex(b, " XRCETH srq ", uint64(p.SRQN))
	}
	if has&HasFETH != 0 {
		b = appendDec(b, " FETH type ", uint64(p.FETH.Type))
		b = appendDec(b, " select ", uint64(p.FETH.Select))
	}
	if has&HasRETH != 0 {
		b = appendHex(b, " RETH va ", p.RETH.VA)
		b = appendHex(b, " rkey ", uint64(p.RETH.RKey))
		b = appendDec(b, " len ", uint64(p.RETH.Len))
	}
	if has&HasAtomicETH != 0 {
		b = appendHex(b, " AtomicETH va ", p.Atomic.VA)
		b = appendHex(b, " rkey ", uint64(p.Atomic.RKey))
		b = appendHex(b, " swap/add ", p.Atomic.SwapAdd)
		b = appendHex(b, " cmp ", p.Atomic.Compare)
	}
	if has&HasAETH != 0 {
		b = append(b, " AETH 0x"...)
		b = append(b, hexDigits[p.AETH.Syndrome>>4], hexDigits[p.AETH.Syndrome&0xF])
		b = append(b, " ("...)
		b = append(b, p.AETH.Syndrome.String()...)
		b = appendDec(b, ") msn ", uint64(p.AETH.MSN))
	}
	if has&HasAtomicAck != 0 {
		b = appendHex(b, " orig ", p.AtomicAck)
	}
	if has&HasImm != 0 {
		b = appendHex(b, " imm ", uint64(p.Imm))
	}
	if has&HasIETH != 0 {
		b = appendHex(b, " IETH rkey ", uint64(p.InvKey))
	}
	return b
}

func appendHex(b []byte, label string, v uint64) []byte {
	b = append(b, label...)
	b = append(b, "0x"...)
	return strconv.AppendUint(b, v, 16)
}

func appendDec(b []byte, label string, v uint64) []byte {
	return strconv.AppendUint(append(b, label...), v, 10)
}
