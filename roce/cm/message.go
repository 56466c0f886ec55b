package cm

// Message is one of the eleven messages, for those that take any: tools and
// tests. The agent decodes into values of its own.
type Message interface {
	// Attribute says which message it is.
	Attribute() Attribute
	// Decode fills the message from a MAD of exactly [MADLen] bytes, which it
	// does not keep. The error is a *[DecodeError].
	Decode(mad []byte) error
	// Append appends [MADLen] bytes.
	Append(to []byte) []byte
}

var (
	_ Message = (*REQ)(nil)
	_ Message = (*APR)(nil)
)

// NewMessage returns an empty message, or nil if attr is not known.
func NewMessage(attr Attribute) Message {
	switch attr {
	case AttrREQ:
		return new(REQ)
	case AttrMRA:
		return new(MRA)
	case AttrREJ:
		return new(REJ)
	case AttrREP:
		return new(REP)
	case AttrRTU:
		return new(RTU)
	case AttrDREQ:
		return new(DREQ)
	case AttrDREP:
		return new(DREP)
	case AttrSIDRREQ:
		return new(SIDRREQ)
	case AttrSIDRREP:
		return new(SIDRREP)
	case AttrLAP:
		return new(LAP)
	case AttrAPR:
		return new(APR)
	}
	return nil
}

// Decode returns the message that a MAD is. Any other bytes are a *[DecodeError].
func Decode(mad []byte) (Message, error) {
	attr, err := Peek(mad)
	if err != nil {
		return nil, err
	}
	m := NewMessage(attr)
	if err := m.Decode(mad); err != nil {
		return nil, err
	}
	return m, nil
}
