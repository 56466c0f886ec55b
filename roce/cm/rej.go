package cm

// MaxARI is the largest additional rejection information in bytes.
const MaxARI = 72

// REJ refuses a REQ or REP, or gives a connection up (§5.4).
type REJ struct {
	Header
	LocalID  CommID // 0 if the sender has made no connection
	RemoteID CommID // 0 if the sender knows none
	Rejected Answered
	// InfoLen is the number of bytes of ARI that count: 7 bits, may exceed
	// [MaxARI] in a message that is wrong.
	InfoLen uint8
	Reason  Reason
	ARI     [MaxARI]byte
	Private [148]byte
}

// Info returns the part of ARI that counts.
func (m *REJ) Info() []byte { return m.ARI[:min(int(m.InfoLen), MaxARI)] }

// Decode fills m from a MAD. Anything but a REJ is a *[DecodeError].
func (m *REJ) Decode(mad []byte) error {
	b, err := m.Header.decode(mad, AttrREJ)
	if err != nil {
		return err
	}
	m.LocalID, m.RemoteID = getIDs(b)
	m.Rejected, m.InfoLen, m.Reason = Answered(b[8]>>6), b[9]>>1, Reason(be.Uint16(b[10:]))
	m.ARI = [MaxARI]byte(b[12:])
	m.Private = [148]byte(b[84:])
	return nil
}

// Append appends the message's 256 bytes.
func (m *REJ) Append(to []byte) []byte {
	to, b := m.appendTo(to, AttrREJ)
	putIDs(b, m.LocalID, m.RemoteID)
	b[8], b[9] = uint8(m.Rejected)<<6, m.InfoLen<<1
	be.PutUint16(b[10:], uint16(m.Reason))
	copy(b[12:], m.ARI[:])
	copy(b[84:], m.Private[:])
	return to
}

// Attribute returns [AttrREJ].
func (m *REJ) Attribute() Attribute { return AttrREJ }
