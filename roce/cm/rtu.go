package cm

// RTU (ready to use) ends the handshake (§5.4).
type RTU struct {
	Header
	LocalID, RemoteID CommID
	Private           [224]byte
}

// Decode fills m from a MAD. Anything but an RTU is a *[DecodeError].
func (m *RTU) Decode(mad []byte) error {
	b, err := m.Header.decode(mad, AttrRTU)
	if err != nil {
		return err
	}
	m.LocalID, m.RemoteID = getIDs(b)
	m.Private = [224]byte(b[8:])
	return nil
}

// Append appends the message's 256 bytes.
func (m *RTU) Append(to []byte) []byte {
	to, b := m.appendTo(to, AttrRTU)
	putIDs(b, m.LocalID, m.RemoteID)
	copy(b[8:], m.Private[:])
	return to
}

// Attribute returns [AttrRTU].
func (m *RTU) Attribute() Attribute { return AttrRTU }
