package peerwire

import (
	"encoding/binary"
	"errors"
)

// Version is the version of everything in this package.
const Version = 1

// Errors of decoding.
var (
	// ErrForeign: the other end is no context.
	ErrForeign = errors.New("peerwire: no context at the other end")
	// ErrVersion: a context of another version.
	ErrVersion = errors.New("peerwire: a context of another version")
	// ErrMalformed: bytes that no context sends.
	ErrMalformed = errors.New("peerwire: malformed")
)

// ID names an incarnation of a context.
type ID [16]byte

// Lengths of private data.
const (
	HelloLen   = 40
	WelcomeLen = 28
	RefusalLen = 4
)

// MaxLanes is the largest number of queue pairs of a peer.
const MaxLanes = 16

// Hello is the private data of a REQ: who dials, and what for.
//
//	0  "hx"            5  lanes           32  generation
//	2  version         6  listening port  36  credits
//	3  kind, 0         8  ID
//	4  lane           24  session
type Hello struct {
	// Lane is which of the Lanes queue pairs of the session this is.
	Lane, Lanes uint8
	// Port is where the dialer can be dialed, 0 nowhere.
	Port uint16
	// ID is the dialer's incarnation; Session a secret of its, the same for
	// all connections of one peer; Generation counts them, from 1.
	ID         ID
	Session    uint64
	Generation uint32
	// Credits is how many notifications the dialer has room for.
	Credits uint32
}

// Append appends the private data.
func (h *Hello) Append(to []byte) []byte {
	to = append(to, 'h', 'x', Version, 0, h.Lane, h.Lanes)
	to = binary.BigEndian.AppendUint16(to, h.Port)
	to = append(to, h.ID[:]...)
	to = binary.BigEndian.AppendUint64(to, h.Session)
	to = binary.BigEndian.AppendUint32(to, h.Generation)
	return binary.BigEndian.AppendUint32(to, h.Credits)
}

// Decode fills h. The error is one of this package's.
func (h *Hello) Decode(b []byte) error {
	if err := check(b, HelloLen); err != nil {
		return err
	}
	*h = Hello{
		Lane: b[4], Lanes: b[5], Port: binary.BigEndian.Uint16(b[6:]), ID: ID(b[8:24]),
		Session: binary.BigEndian.Uint64(b[24:]), Generation: binary.BigEndian.Uint32(b[32:]), Credits: binary.BigEndian.Uint32(b[36:]),
	}
	if h.Lanes == 0 || h.Lanes > MaxLanes || h.Lane >= h.Lanes || h.Generation == 0 || h.ID == (ID{}) {
		return ErrMalformed
	}
	return nil
}

// Welcome is the private data of a REP.
//
//	0  "hx"       4  reserved  24  credits
//	2  version    8  ID
//	3  flags: 1, the session was not known
type Welcome struct {
	// ID is the listener's incarnation.
	ID ID
	// New says that the listener remembers nothing of the session.
	New bool
	// Credits is how many notifications the listener has room for.
	Credits uint32
}

// Append appends the private data.
func (w *Welcome) Append(to []byte) []byte {
	flags := byte(0)
	if w.New {
		flags = 1
	}
	to = append(to, 'h', 'x', Version, flags, 0, 0, 0, 0)
	to = append(to, w.ID[:]...)
	return binary.BigEndian.AppendUint32(to, w.Credits)
}

// Decode fills w. The error is one of this package's.
func (w *Welcome) Decode(b []byte) error {
	if err := check(b, WelcomeLen); err != nil {
		return err
	}
	*w = Welcome{ID: ID(b[8:24]), New: b[3]&1 != 0, Credits: binary.BigEndian.Uint32(b[24:])}
	if w.ID == (ID{}) {
		return ErrMalformed
	}
	return nil
}

// Refusal says why a context refuses another.
type Refusal uint8

// The refusals.
const (
	RefusedVersion Refusal = 1 + iota
	RefusedPeers           // it knows as many peers as it may
	RefusedSession         // it does not know the session that a further lane is for
	RefusedOld             // it has seen a newer generation
	RefusedClosing
)

var refusals = [...]string{
	RefusedVersion: "it speaks another version of the protocol between contexts",
	RefusedPeers:   "it knows as many peers as it may: raise MaxPeers there",
	RefusedSession: "it does not know the session",
	RefusedOld:     "it has seen a newer connection of this session",
	RefusedClosing: "it is closing",
}

// String says it in words.
func (r Refusal) String() string {
	if int(r) < len(refusals) && refusals[r] != "" {
		return refusals[r]
	}
	return "for a reason that is not known here"
}

// Append appends the private data of a REJ.
func (r Refusal) Append(to []byte) []byte { return append(to, 'h', 'x', Version, byte(r)) }

// DecodeRefusal returns the refusal in the private data of a REJ, which comes
// padded with zeros; false if it is not a context's.
func DecodeRefusal(b []byte) (Refusal, bool) {
	if len(b) < RefusalLen || b[0] != 'h' || b[1] != 'x' || b[3] == 0 {
		return 0, false
	}
	return Refusal(b[3]), true
}

func check(b []byte, n int) error {
	switch {
	case len(b) < 4 || b[0] != 'h' || b[1] != 'x':
		return ErrForeign
	case b[2] != Version:
		return ErrVersion
	case len(b) != n:
		return ErrMalformed
	}
	return nil
}
