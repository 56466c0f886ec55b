package cm

import "github.com/gohixl/hixl/roce"

// Transport is the transport service of a connection (§5.4 REQ).
type Transport uint8

// The transport services. RD is obsolete; the extended ones are not spoken here.
const (
	RC       Transport = 0
	UC       Transport = 1
	RD       Transport = 2
	Extended Transport = 3
)

// String returns "RC", "UC", "RD" or "extended".
func (t Transport) String() string { return [...]string{"RC", "UC", "RD", "extended"}[t&3] }

// REQ asks for a connection (§5.4). PSNs, QPNs, labels and exponents wider than
// their fields are cut.
type REQ struct {
	Header
	LocalID    CommID
	VendorID   uint32 // 24 bits
	Service    ServiceID
	CAGUID     uint64
	QKey       uint32
	QPN        roce.QPN
	LocalEECN  uint32 // 24 bits
	RemoteEECN uint32 // 24 bits
	// ResponderResources is how many READs and atomics the sender can serve at
	// once, InitiatorDepth how many it wants to have in flight.
	ResponderResources, InitiatorDepth uint8
	// RemoteTimeout and LocalTimeout are exponents (5 bits, [Millis]): how long
	// the recipient, and the sender, may take to answer.
	RemoteTimeout, LocalTimeout uint8
	Transport                   Transport
	ExtendedTransport           uint8 // 3 bits; 1 is XRC
	FlowControl                 bool  // end-to-end credits
	RDC                         bool
	// StartPSN is the PSN of the first request that the recipient of this
	// message will send: the sender expects it (§5.7).
	StartPSN     roce.PSN
	RetryCount   uint8 // 3 bits
	RNRRetry     uint8 // 3 bits: how often the recipient may retry
	PKey         uint16
	MTU          roce.PathMTU // 4 bits; not checked
	MaxCMRetries uint8        // 4 bits
	SRQ          bool
	Primary      Path
	Alternate    Path // all zero: none
	Private      [92]byte
}

// HasAlternate reports whether the message describes a second path, which its
// LID says (§5.4).
func (m *REQ) HasAlternate() bool { return m.Alternate.LocalLID != 0 }

// Decode fills m from a MAD. Anything but a REQ is a *[DecodeError]; reserved
// bits are ignored. Values are not judged.
func (m *REQ) Decode(mad []byte) error {
	b, err := m.Header.decode(mad, AttrREQ)
	if err != nil {
		return err
	}
	m.LocalID, m.VendorID = CommID(be.Uint32(b)), get24(b[5:])
	m.Service, m.CAGUID = ServiceID(be.Uint64(b[8:])), be.Uint64(b[16:])
	m.QKey, m.QPN = be.Uint32(b[28:]), roce.QPN(get24(b[32:]))
	m.ResponderResources, m.InitiatorDepth = b[35], b[39]
	m.LocalEECN, m.RemoteEECN = get24(b[36:]), get24(b[40:])
	m.RemoteTimeout, m.Transport, m.FlowControl = b[43]>>3, Transport(b[43]>>1&3), b[43]&1 != 0
	m.StartPSN, m.LocalTimeout, m.RetryCount = roce.PSN(get24(b[44:])), b[47]>>3, b[47]&7
	m.PKey = be.Uint16(b[48:])
	m.MTU, m.RDC, m.RNRRetry = roce.PathMTU(b[50]>>4), b[50]&8 != 0, b[50]&7
	m.MaxCMRetries, m.SRQ, m.ExtendedTransport = b[51]>>4, b[51]&8 != 0, b[51]&7
	m.Primary.decode(b[52:])
	m.Alternate.decode(b[52+pathLen:])
	m.Private = [92]byte(b[140:])
	return nil
}

// Append appends the message's 256 bytes.
func (m *REQ) Append(to []byte) []byte {
	to, b := m.appendTo(to, AttrREQ)
	be.PutUint32(b, uint32(m.LocalID))
	put24(b[5:], m.VendorID)
	be.PutUint64(b[8:], uint64(m.Service))
	be.PutUint64(b[16:], m.CAGUID)
	be.PutUint32(b[28:], m.QKey)
	put24(b[32:], uint32(m.QPN))
	b[35], b[39] = m.ResponderResources, m.InitiatorDepth
	put24(b[36:], m.LocalEECN)
	put24(b[40:], m.RemoteEECN)
	b[43] = m.RemoteTimeout<<3 | uint8(m.Transport&3)<<1 | bit(m.FlowControl, 1)
	put24(b[44:], uint32(m.StartPSN))
	b[47] = m.LocalTimeout<<3 | m.RetryCount&7
	be.PutUint16(b[48:], m.PKey)
	b[50] = uint8(m.MTU)<<4 | bit(m.RDC, 8) | m.RNRRetry&7
	b[51] = m.MaxCMRetries<<4 | bit(m.SRQ, 8) | m.ExtendedTransport&7
	m.Primary.put(b[52:])
	m.Alternate.put(b[52+pathLen:])
	copy(b[140:], m.Private[:])
	return to
}

// Attribute returns [AttrREQ].
func (m *REQ) Attribute() Attribute { return AttrREQ }
