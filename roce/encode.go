package roce

// AppendHeader appends the BTH and the opcode's extension headers, at most
// [MaxHeaderLen] bytes, every bit of them written. Fields wider than their place
// are cut to it. It allocates only when b has no room.
func (p *Packet) AppendHeader(b []byte) []byte {
	var h [MaxHeaderLen]byte
	info := &opcodes[p.Opcode]
	p.putBTH(h[:BTHLen])
	if info.has != 0 {
		p.putExt(info.has, h[BTHLen:])
	}
	return append(b, h[:BTHLen+int(info.ext)]...)
}

// Append appends the whole packet: headers, payload, Pad pad bytes (zero unless
// they were decoded), and four zero bytes for [Headers.Seal] to fill. It
// allocates only when b has no room.
func (p *Packet) Append(b []byte) []byte {
	b = p.AppendHeader(b)
	b = append(b, p.Payload...)
	b = append(b, p.padding[:p.Pad&3]...)
	return append(b, 0, 0, 0, 0)
}

func (p *Packet) putBTH(b []byte) {
	_ = b[BTHLen-1]
	b[0] = uint8(p.Opcode)
	b[1] = bit(p.SE)<<7 | bit(p.Mig)<<6 | p.Pad&3<<4 | p.TVer&0xF
	be.PutUint16(b[2:], p.PKey)
	be.PutUint32(b[4:], uint32(p.DestQP&QPNMask))
	be.PutUint32(b[8:], uint32(p.PSN&PSNMask))
	b[4] = bit(p.FECN)<<7 | bit(p.BECN)<<6 | p.Resv6&0x3F
	b[8] = bit(p.AckReq)<<7 | p.Resv7&0x7F
}

func bit(v bool) uint8 {
	if v {
		return 1
	}
	return 0
}

// putExt writes the extension headers; b has room for the largest set.
func (p *Packet) putExt(has Hdr, b []byte) {
	if has&HasDETH != 0 {
		p.DETH.Put(b)
		b = b[DETHLen:]
	}
	if has&HasXRCETH != 0 {
		be.PutUint32(b, uint32(p.SRQNResv)<<24|p.SRQN&0xFFFFFF)
		b = b[XRCETHLen:]
	}
	if has&HasFETH != 0 {
		p.FETH.Put(b)
		b = b[FETHLen:]
	}
	if has&HasRETH != 0 {
		p.RETH.Put(b)
		b = b[RETHLen:]
	}
	if has&HasAtomicETH != 0 {
		p.Atomic.Put(b)
		b = b[AtomicETHLen:]
	}
	if has&HasAETH != 0 {
		p.AETH.Put(b)
		b = b[AETHLen:]
	}
	if has&HasAtomicAck != 0 {
		be.PutUint64(b, p.AtomicAck)
		b = b[AtomicAckLen:]
	}
	if has&HasImm != 0 {
		be.PutUint32(b, p.Imm)
		b = b[ImmLen:]
	}
	if has&HasIETH != 0 {
		be.PutUint32(b, p.InvKey)
		b = b[IETHLen:]
	}
	if has&HasCNP != 0 {
		copy(b, p.CNPResv[:])
	}
}
