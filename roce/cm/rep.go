package cm

import "github.com/gohixl/hixl/roce"

// Failover says what became of a REQ's alternate path (§5.4 REP).
type Failover uint8

// Answers to an alternate path. Linux always sends FailoverAccepted.
const (
	FailoverAccepted     Failover = 0
	FailoverNotSupported Failover = 1
	FailoverRejected     Failover = 2
)

// REP accepts a REQ (§5.4).
type REP struct {
	Header
	LocalID, RemoteID CommID
	QKey              uint32
	QPN               roce.QPN
	VendorID          uint32 // 24 bits, in three places of the message
	EECN              uint32 // 24 bits
	// StartPSN is the PSN of the first request that the recipient of this
	// message will send (§5.7).
	StartPSN                           roce.PSN
	ResponderResources, InitiatorDepth uint8
	TargetACKDelay                     uint8 // exponent, 5 bits
	Failover                           Failover
	FlowControl                        bool
	RNRRetry                           uint8 // 3 bits: how often the recipient may retry
	SRQ                                bool
	CAGUID                             uint64
	Private                            [196]byte
}

// Decode fills m from a MAD. Anything but a REP is a *[DecodeError].
func (m *REP) Decode(mad []byte) error {
	b, err := m.Header.decode(mad, AttrREP)
	if err != nil {
		return err
	}
	m.LocalID, m.RemoteID = getIDs(b)
	m.QKey, m.QPN = be.Uint32(b[8:]), roce.QPN(get24(b[12:]))
	m.VendorID = uint32(b[15])<<16 | uint32(b[19])<<8 | uint32(b[23])
	m.EECN, m.StartPSN = get24(b[16:]), roce.PSN(get24(b[20:]))
	m.ResponderResources, m.InitiatorDepth = b[24], b[25]
	m.TargetACKDelay, m.Failover, m.FlowControl = b[26]>>3, Failover(b[26]>>1&3), b[26]&1 != 0
	m.RNRRetry, m.SRQ = b[27]>>5, b[27]&0x10 != 0
	m.CAGUID = be.Uint64(b[28:])
	m.Private = [196]byte(b[36:])
	return nil
}

// Append appends the message's 256 bytes.
func (m *REP) Append(to []byte) []byte {
	to, b := m.appendTo(to, AttrREP)
	putIDs(b, m.LocalID, m.RemoteID)
	be.PutUint32(b[8:], m.QKey)
	put24(b[12:], uint32(m.QPN))
	put24(b[16:], m.EECN)
	put24(b[20:], uint32(m.StartPSN))
	b[15], b[19], b[23] = byte(m.VendorID>>16), byte(m.VendorID>>8), byte(m.VendorID)
	b[24], b[25] = m.ResponderResources, m.InitiatorDepth
	b[26] = m.TargetACKDelay<<3 | uint8(m.Failover&3)<<1 | bit(m.FlowControl, 1)
	b[27] = m.RNRRetry<<5 | bit(m.SRQ, 0x10)
	be.PutUint64(b[28:], m.CAGUID)
	copy(b[36:], m.Private[:])
	return to
}

// Attribute returns [AttrREP].
func (m *REP) Attribute() Attribute { return AttrREP }

// getIDs reads the ids with which every message but REQ and SIDR begins: its
// sender's and its recipient's.
func getIDs(b []byte) (local, remote CommID) {
	return CommID(be.Uint32(b)), CommID(be.Uint32(b[4:]))
}

func putIDs(b []byte, local, remote CommID) {
	be.PutUint32(b, uint32(local))
	be.PutUint32(b[4:], uint32(remote))
}
