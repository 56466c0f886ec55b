package roce

// Decode fills p from a UDP payload: BTH, extension headers, payload, pad and
// the four ICRC bytes, which it does not check ([Headers.Check] does). It takes
// any bytes and either gives a packet or, leaving p as it was, a *[DecodeError]:
// [ErrTruncated], [ErrOpcode], [ErrVersion], or [ErrLength] for a pad count
// without room. Rules a responder must answer with a NAK are not errors here;
// see CheckLength. Reserved bits are kept, so that Append gives back the same
// bytes. It does not allocate and p.Payload aliases b.
func (p *Packet) Decode(b []byte) error {
	if len(b) < minPacket {
		return errRunt
	}
	op := Opcode(b[0])
	info := &opcodes[op]
	if info.flags&opKnown == 0 {
		return &errsOf[op].unknown // before any length is derived from it (§9.1 R12)
	}
	if b[1]&0xF != 0 {
		return errVersion
	}
	n := BTHLen + int(info.ext)
	end := len(b) - ICRCLen - int(b[1]>>4&3)
	if end < n { // all three at once: no subtraction below zero follows (§9.1 R13)
		if len(b) < n+ICRCLen {
			return &errsOf[op].truncated
		}
		return &errsOf[op].pad
	}
	qp, psn := be.Uint32(b[4:]), be.Uint32(b[8:])
	// Field by field: a literal would be built elsewhere and copied, and a wide load
	// of what was stored in narrow pieces waits for all stores before it, here for
	// the whole payload of the packet before.
	*p = Packet{}
	p.Opcode = op
	p.SE = b[1]&0x80 != 0
	p.Mig = b[1]&0x40 != 0
	p.Pad = b[1] >> 4 & 3
	p.Resv6 = uint8(qp >> 24 & 0x3F)
	p.Resv7 = uint8(psn >> 24 & 0x7F)
	p.FECN = qp>>31 != 0
	p.BECN = qp>>30&1 != 0
	p.AckReq = psn>>31 != 0
	p.PKey = be.Uint16(b[2:])
	p.DestQP = QPN(qp) & QPNMask
	p.PSN = PSN(psn) & PSNMask
	p.Payload = b[n:end:end]
	if p.Pad != 0 {
		copy(p.padding[:p.Pad], b[end:])
	}
	if info.has != 0 {
		p.decodeExt(info.has, b[BTHLen:n])
	}
	return nil
}

// decodeExt reads the extension headers; b has exactly their bytes.
func (p *Packet) decodeExt(has Hdr, b []byte) {
	if has&HasDETH != 0 {
		p.DETH.Get(b)
		b = b[DETHLen:]
	}
	if has&HasXRCETH != 0 {
		v := be.Uint32(b)
		p.SRQNResv, p.SRQN = uint8(v>>24), v&0xFFFFFF
		b = b[XRCETHLen:]
	}
	if has&HasFETH != 0 {
		p.FETH.Get(b)
		b = b[FETHLen:]
	}
	if has&HasRETH != 0 {
		p.RETH.Get(b)
		b = b[RETHLen:]
	}
	if has&HasAtomicETH != 0 {
		p.Atomic.Get(b)
		b = b[AtomicETHLen:]
	}
	if has&HasAETH != 0 {
		p.AETH.Get(b)
		b = b[AETHLen:]
	}
	if has&HasAtomicAck != 0 {
		p.AtomicAck = be.Uint64(b)
		b = b[AtomicAckLen:]
	}
	if has&HasImm != 0 {
		p.Imm = be.Uint32(b)
		b = b[ImmLen:]
	}
	if has&HasIETH != 0 {
		p.InvKey = be.Uint32(b)
		b = b[IETHLen:]
	}
	if has&HasCNP != 0 {
		copy(p.CNPResv[:], b)
	}
}
