package cm

// Answered says which message an MRA acknowledges or a REJ rejects (§5.4).
type Answered uint8

// The messages that are answered. The third value is LAP in an MRA and any other
// message in a REJ.
const (
	ToREQ   Answered = 0
	ToREP   Answered = 1
	ToLAP   Answered = 2
	ToOther Answered = 2
)

// MRA says that the answer to a message will take longer (§5.4).
type MRA struct {
	Header
	LocalID, RemoteID CommID
	Answered          Answered // 2 bits
	ServiceTimeout    uint8    // exponent, 5 bits ([Millis]): how much longer
	Private           [222]byte
}

// Decode fills m from a MAD. Anything but an MRA is a *[DecodeError].
func (m *MRA) Decode(mad []byte) error {
	b, err := m.Header.decode(mad, AttrMRA)
	if err != nil {
		return err
	}
	m.LocalID, m.RemoteID = getIDs(b)
	m.Answered, m.ServiceTimeout = Answered(b[8]>>6), b[9]>>3
	m.Private = [222]byte(b[10:])
	return nil
}

// Append appends the message's 256 bytes.
func (m *MRA) Append(to []byte) []byte {
	to, b := m.appendTo(to, AttrMRA)
	putIDs(b, m.LocalID, m.RemoteID)
	b[8], b[9] = uint8(m.Answered)<<6, m.ServiceTimeout<<3
	copy(b[10:], m.Private[:])
	return to
}

// Attribute returns [AttrMRA].
func (m *MRA) Attribute() Attribute { return AttrMRA }
