package cm

import (
	"fmt"

	"github.com/gohixl/hixl/roce"
)

// SIDRREQ asks which datagram queue pair serves a service id (§5.4, §5.11).
type SIDRREQ struct {
	Header
	RequestID CommID
	PKey      uint16
	Service   ServiceID
	Private   [216]byte
}

// Decode fills m from a MAD. Anything but a SIDR_REQ is a *[DecodeError].
func (m *SIDRREQ) Decode(mad []byte) error {
	b, err := m.Header.decode(mad, AttrSIDRREQ)
	if err != nil {
		return err
	}
	m.RequestID, m.PKey = CommID(be.Uint32(b)), be.Uint16(b[4:])
	m.Service = ServiceID(be.Uint64(b[8:]))
	m.Private = [216]byte(b[16:])
	return nil
}

// Append appends the message's 256 bytes.
func (m *SIDRREQ) Append(to []byte) []byte {
	to, b := m.appendTo(to, AttrSIDRREQ)
	be.PutUint32(b, uint32(m.RequestID))
	be.PutUint16(b[4:], m.PKey)
	be.PutUint64(b[8:], uint64(m.Service))
	copy(b[16:], m.Private[:])
	return to
}

// Attribute returns [AttrSIDRREQ].
func (m *SIDRREQ) Attribute() Attribute { return AttrSIDRREQ }

// SIDRStatus is the answer of a SIDR_REP (§5.4).
type SIDRStatus uint8

// The answers.
const (
	SIDROK          SIDRStatus = 0
	SIDRUnsupported SIDRStatus = 1 // nobody listens
	SIDRRejected    SIDRStatus = 2
	SIDRNoQP        SIDRStatus = 3
	SIDRRedirect    SIDRStatus = 4
	SIDRVersion     SIDRStatus = 5
)

// String returns the answer in words.
func (s SIDRStatus) String() string {
	names := [...]string{"ok", "service not supported", "rejected", "no QP available", "redirect", "unsupported version"}
	if int(s) >= len(names) {
		return fmt.Sprintf("SIDR status %d", uint8(s))
	}
	return fmt.Sprintf("%s (%d)", names[s], uint8(s))
}

// SIDRREP answers a SIDR_REQ (§5.4).
type SIDRREP struct {
	Header
	RequestID CommID
	Status    SIDRStatus
	InfoLen   uint8 // bytes of Info that count; may exceed 72 in a message that is wrong
	VendorID  uint32
	QPN       roce.QPN
	Service   ServiceID
	QKey      uint32
	Info      [72]byte
	Private   [136]byte
}

// Decode fills m from a MAD. Anything but a SIDR_REP is a *[DecodeError].
func (m *SIDRREP) Decode(mad []byte) error {
	b, err := m.Header.decode(mad, AttrSIDRREP)
	if err != nil {
		return err
	}
	m.RequestID, m.Status, m.InfoLen = CommID(be.Uint32(b)), SIDRStatus(b[4]), b[5]
	m.VendorID = uint32(be.Uint16(b[6:]))<<8 | uint32(b[11])
	m.QPN, m.Service, m.QKey = roce.QPN(get24(b[8:])), ServiceID(be.Uint64(b[12:])), be.Uint32(b[20:])
	m.Info, m.Private = [72]byte(b[24:]), [136]byte(b[96:])
	return nil
}

// Append appends the message's 256 bytes.
func (m *SIDRREP) Append(to []byte) []byte {
	to, b := m.appendTo(to, AttrSIDRREP)
	be.PutUint32(b, uint32(m.RequestID))
	b[4], b[5] = uint8(m.Status), m.InfoLen
	be.PutUint16(b[6:], uint16(m.VendorID>>8))
	put24(b[8:], uint32(m.QPN))
	b[11] = byte(m.VendorID)
	be.PutUint64(b[12:], uint64(m.Service))
	be.PutUint32(b[20:], m.QKey)
	copy(b[24:], m.Info[:])
	copy(b[96:], m.Private[:])
	return to
}

// Attribute returns [AttrSIDRREP].
func (m *SIDRREP) Attribute() Attribute { return AttrSIDRREP }
