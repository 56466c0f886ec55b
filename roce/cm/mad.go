package cm

import (
	"encoding/binary"
	"fmt"
)

// MADLen is the length in bytes of every management datagram: it is the whole
// payload of a GSI packet (§5.2).
const MADLen = 256

// headerLen is the length of the MAD header (§5.3).
const headerLen = 24

const (
	baseVersion  = 1
	classCM      = 0x07
	classVersion = 2
	methodSend   = 0x03
)

var be = binary.BigEndian

// Attribute is a MAD's attribute id: which message it is (§5.3).
type Attribute uint16

// The attributes of connection management.
const (
	AttrREQ     Attribute = 0x0010
	AttrMRA     Attribute = 0x0011
	AttrREJ     Attribute = 0x0012
	AttrREP     Attribute = 0x0013
	AttrRTU     Attribute = 0x0014
	AttrDREQ    Attribute = 0x0015
	AttrDREP    Attribute = 0x0016
	AttrSIDRREQ Attribute = 0x0017
	AttrSIDRREP Attribute = 0x0018
	AttrLAP     Attribute = 0x0019
	AttrAPR     Attribute = 0x001A
)

var attributeNames = [...]string{"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"}

// Known reports whether a is a message of connection management.
func (a Attribute) Known() bool { return a >= AttrREQ && a <= AttrAPR }

// String returns the message's name, such as "SIDR_REQ".
func (a Attribute) String() string {
	if !a.Known() {
		return fmt.Sprintf("Attribute(%#04x)", uint16(a))
	}
	return attributeNames[a-AttrREQ]
}

// CommID is a communication id: the name one side gives a connection, or a SIDR
// exchange. 0 is never one; what it means beyond that is its owner's secret.
type CommID uint32

// String returns eight hexadecimal digits, in the order of the wire.
func (id CommID) String() string { return fmt.Sprintf("%08x", uint32(id)) }

// Header is what all messages have in front, less what is the same in each of
// them: base version 1, class 7, class version 2, method Send. Status and
// ClassSpecific are 0 in connection management.
type Header struct {
	Status, ClassSpecific uint16
	// TID is the transaction id: opaque, answers repeat it.
	TID uint64
	// Modifier is 0, or the vendor's option word in REQ, REP and SIDR_REP (§5.14 ECE).
	Modifier uint32
}

// decode checks what §5.3 asks of a message and returns what follows the header.
func (h *Header) decode(mad []byte, want Attribute) ([]byte, error) {
	attr, err := Peek(mad)
	if err != nil {
		return nil, err
	}
	if attr != want {
		return nil, &DecodeError{Reason: ErrAttribute, Got: int(attr), Want: int(want)}
	}
	h.Status, h.ClassSpecific = be.Uint16(mad[4:]), be.Uint16(mad[6:])
	h.TID, h.Modifier = be.Uint64(mad[8:]), be.Uint32(mad[20:])
	return mad[headerLen:MADLen], nil
}

// appendTo extends b by a message with this header and returns it and what
// follows the header, zeroed.
func (h *Header) appendTo(b []byte, attr Attribute) (all, body []byte) {
	var zero [MADLen]byte
	at := len(b)
	b = append(b, zero[:]...)
	m := b[at:]
	m[0], m[1], m[2], m[3] = baseVersion, classCM, classVersion, methodSend
	be.PutUint16(m[4:], h.Status)
	be.PutUint16(m[6:], h.ClassSpecific)
	be.PutUint64(m[8:], h.TID)
	be.PutUint16(m[16:], uint16(attr))
	be.PutUint32(m[20:], h.Modifier)
	return b, m[headerLen:]
}

// Peek says which message a MAD is. What is none of connection management is a
// *[DecodeError]: wrong length, version, class, method or attribute. Such MADs are
// dropped without an answer (§5.3).
func Peek(mad []byte) (Attribute, error) {
	bad := func(reason error, got, want int) (Attribute, error) {
		return 0, &DecodeError{Reason: reason, Got: got, Want: want}
	}
	if len(mad) != MADLen {
		return bad(ErrLength, len(mad), MADLen)
	}
	switch {
	case mad[0] != baseVersion:
		return bad(ErrVersion, int(mad[0]), baseVersion)
	case mad[1] != classCM:
		return bad(ErrClass, int(mad[1]), classCM)
	case mad[2] != classVersion:
		return bad(ErrVersion, int(mad[2]), classVersion)
	case mad[3] != methodSend:
		return bad(ErrMethod, int(mad[3]), methodSend)
	}
	attr := Attribute(be.Uint16(mad[16:]))
	if !attr.Known() {
		return bad(ErrAttribute, int(attr), 0)
	}
	return attr, nil
}
