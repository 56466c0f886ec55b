package cm

import "github.com/gohixl/hixl/roce"

// DREQ asks to disconnect (§5.4).
type DREQ struct {
	Header
	LocalID, RemoteID CommID
	// QPN is the recipient's own queue pair number, which proves that its sender
	// means this connection.
	QPN     roce.QPN
	Private [220]byte
}

// Decode fills m from a MAD. Anything but a DREQ is a *[DecodeError].
func (m *DREQ) Decode(mad []byte) error {
	b, err := m.Header.decode(mad, AttrDREQ)
	if err != nil {
		return err
	}
	m.LocalID, m.RemoteID = getIDs(b)
	m.QPN = roce.QPN(get24(b[8:]))
	m.Private = [220]byte(b[12:])
	return nil
}

// Append appends the message's 256 bytes.
func (m *DREQ) Append(to []byte) []byte {
	to, b := m.appendTo(to, AttrDREQ)
	putIDs(b, m.LocalID, m.RemoteID)
	put24(b[8:], uint32(m.QPN))
	copy(b[12:], m.Private[:])
	return to
}

// Attribute returns [AttrDREQ].
func (m *DREQ) Attribute() Attribute { return AttrDREQ }

// DREP answers a DREQ (§5.4).
type DREP struct {
	Header
	LocalID, RemoteID CommID
	Private           [224]byte
}

// Decode fills m from a MAD. Anything but a DREP is a *[DecodeError].
func (m *DREP) Decode(mad []byte) error {
	b, err := m.Header.decode(mad, AttrDREP)
	if err != nil {
		return err
	}
	m.LocalID, m.RemoteID = getIDs(b)
	m.Private = [224]byte(b[8:])
	return nil
}

// Append appends the message's 256 bytes.
func (m *DREP) Append(to []byte) []byte {
	to, b := m.appendTo(to, AttrDREP)
	putIDs(b, m.LocalID, m.RemoteID)
	copy(b[8:], m.Private[:])
	return to
}

// Attribute returns [AttrDREP].
func (m *DREP) Attribute() Attribute { return AttrDREP }
