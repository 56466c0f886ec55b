package cm

import "github.com/gohixl/hixl/roce"

// LAP asks to load an alternate path (§5.4).
type LAP struct {
	Header
	LocalID, RemoteID CommID
	QPN               roce.QPN // the recipient's own
	RemoteTimeout     uint8    // exponent, 5 bits
	Path              Path
	Private           [168]byte
}

// Decode fills m from a MAD. Anything but a LAP is a *[DecodeError].
func (m *LAP) Decode(mad []byte) error {
	b, err := m.Header.decode(mad, AttrLAP)
	if err != nil {
		return err
	}
	m.LocalID, m.RemoteID = getIDs(b)
	m.QPN, m.RemoteTimeout = roce.QPN(get24(b[12:])), b[15]>>3
	// The path differs from a REQ's: class and hop limit stand before the rate.
	m.Path = Path{
		LocalLID: be.Uint16(b[20:]), RemoteLID: be.Uint16(b[22:]),
		LocalGID: GID(b[24:40]), RemoteGID: GID(b[40:56]),
		FlowLabel: get20(b[56:]), TrafficClass: b[59], HopLimit: b[60], Rate: b[61] & 0x3F,
		SL: b[62] >> 4, SubnetLocal: b[62]&8 != 0, ACKTimeout: b[63] >> 3,
	}
	m.Private = [168]byte(b[64:])
	return nil
}

// Append appends the message's 256 bytes.
func (m *LAP) Append(to []byte) []byte {
	to, b := m.appendTo(to, AttrLAP)
	putIDs(b, m.LocalID, m.RemoteID)
	put24(b[12:], uint32(m.QPN))
	b[15] = m.RemoteTimeout << 3
	p := &m.Path
	be.PutUint16(b[20:], p.LocalLID)
	be.PutUint16(b[22:], p.RemoteLID)
	copy(b[24:], p.LocalGID[:])
	copy(b[40:], p.RemoteGID[:])
	or20(b[56:], p.FlowLabel)
	b[59], b[60], b[61] = p.TrafficClass, p.HopLimit, p.Rate&0x3F
	b[62], b[63] = p.SL<<4|bit(p.SubnetLocal, 8), p.ACKTimeout<<3
	copy(b[64:], m.Private[:])
	return to
}

// Attribute returns [AttrLAP].
func (m *LAP) Attribute() Attribute { return AttrLAP }

// APRUnsupported is the status of an APR that says that alternate paths are not
// supported (Linux's IB_CM_APR_UNSUPPORTED).
const APRUnsupported = 2

// APR answers a LAP (§5.4).
type APR struct {
	Header
	LocalID, RemoteID CommID
	InfoLen           uint8 // bytes of Info that count; may exceed 72 in a message that is wrong
	Status            uint8 // 0 is success
	Info              [72]byte
	Private           [148]byte
}

// Decode fills m from a MAD. Anything but an APR is a *[DecodeError].
func (m *APR) Decode(mad []byte) error {
	b, err := m.Header.decode(mad, AttrAPR)
	if err != nil {
		return err
	}
	m.LocalID, m.RemoteID = getIDs(b)
	m.InfoLen, m.Status = b[8], b[9]
	m.Info, m.Private = [72]byte(b[12:]), [148]byte(b[84:])
	return nil
}

// Append appends the message's 256 bytes.
func (m *APR) Append(to []byte) []byte {
	to, b := m.appendTo(to, AttrAPR)
	putIDs(b, m.LocalID, m.RemoteID)
	b[8], b[9] = m.InfoLen, m.Status
	copy(b[12:], m.Info[:])
	copy(b[84:], m.Private[:])
	return to
}

// Attribute returns [AttrAPR].
func (m *APR) Attribute() Attribute { return AttrAPR }
