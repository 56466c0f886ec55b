package cm

// LIDPermissive stands in the LID fields of RoCE paths through a router, which
// all of Linux's are (§5.6).
const LIDPermissive = 0xFFFF

// Path is one of the two paths that a REQ describes, seen from its sender. On
// RoCE only the GIDs, flow label, traffic class, hop limit and ACK timeout mean
// something (§5.6).
type Path struct {
	LocalLID, RemoteLID uint16
	LocalGID, RemoteGID GID
	FlowLabel           uint32 // 20 bits
	Rate                uint8  // 6 bits, 0 on RoCE (C10)
	TrafficClass        uint8
	HopLimit            uint8
	SL                  uint8 // 4 bits
	SubnetLocal         bool
	ACKTimeout          uint8 // exponent, 5 bits: the QP timeout that the recipient should use
}

const pathLen = 44

// decode reads the layout that both paths of a REQ have.
func (p *Path) decode(b []byte) {
	p.LocalLID, p.RemoteLID = be.Uint16(b), be.Uint16(b[2:])
	p.LocalGID, p.RemoteGID = GID(b[4:20]), GID(b[20:36])
	p.FlowLabel, p.Rate = get20(b[36:]), b[39]&0x3F
	p.TrafficClass, p.HopLimit = b[40], b[41]
	p.SL, p.SubnetLocal, p.ACKTimeout = b[42]>>4, b[42]&8 != 0, b[43]>>3
}

func (p *Path) put(b []byte) {
	be.PutUint16(b, p.LocalLID)
	be.PutUint16(b[2:], p.RemoteLID)
	copy(b[4:], p.LocalGID[:])
	copy(b[20:], p.RemoteGID[:])
	or20(b[36:], p.FlowLabel)
	b[39] = p.Rate & 0x3F
	b[40], b[41] = p.TrafficClass, p.HopLimit
	b[42] = p.SL<<4 | bit(p.SubnetLocal, 8)
	b[43] = p.ACKTimeout << 3
}
