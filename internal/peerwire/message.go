package peerwire

import "encoding/binary"

// Limits of messages, in bytes.
const (
	// MaxName bounds the name of a region.
	MaxName = 255
	// MaxNotify bounds the name, and the data, of a notification.
	MaxNotify = 1024
	// MaxMessage is the longest message.
	MaxMessage = headerLen + 2 + 2*MaxNotify

	headerLen = 8
)

// Kind is what a message is.
type Kind uint8

// The messages.
const (
	// Lookup asks for a region by name.
	Lookup Kind = 1 + iota
	// Found answers a Lookup, with the same number.
	Found
	// Revoke says that a region has gone.
	Revoke
	// Notify is a notification.
	Notify
	// Credit says how many notifications have been taken.
	Credit
	// Bye says that the sender will disconnect, and why.
	Bye
)

// Reasons of a Bye.
const (
	ByeClosed  = 1 // the context closes, or forgets the peer
	ByeEvicted = 2 // to make room: come back when you need it
)

// Region is what a Found carries of a region.
type Region struct {
	ID         uint64
	Generation uint32
	RKey       uint32
	Addr, Len  uint64
	Access     uint32
}

const regionLen = 36

// Message is any message. Kind says which fields count.
//
//	0  version  1  kind  2  flag  3  reserved  4  number
//	8  Lookup: the name. Found: the region. Revoke: its id. Credit: the count.
//	   Notify: length of the name (2), name, data. Bye: the reason (1).
type Message struct {
	Kind Kind
	// Number joins a Found with its Lookup.
	Number uint32
	// Known is false in a Found when nobody has published the name.
	Known  bool
	Region Region // Found
	ID     uint64 // Revoke: the region
	Count  uint64 // Credit
	Reason uint8  // Bye
	// Name and Data alias what was decoded.
	Name []byte // Lookup, Notify
	Data []byte // Notify
}

// Append appends the message, whose lengths have been checked.
func (m *Message) Append(to []byte) []byte {
	flag := byte(0)
	if m.Known {
		flag = 1
	}
	to = append(to, Version, byte(m.Kind), flag, 0)
	to = binary.BigEndian.AppendUint32(to, m.Number)
	switch m.Kind {
	case Lookup:
		return append(to, m.Name...)
	case Found:
		r := &m.Region
		to = binary.BigEndian.AppendUint64(to, r.ID)
		to = binary.BigEndian.AppendUint32(to, r.Generation)
		to = binary.BigEndian.AppendUint32(to, r.RKey)
		to = binary.BigEndian.AppendUint64(to, r.Addr)
		to = binary.BigEndian.AppendUint64(to, r.Len)
		return binary.BigEndian.AppendUint32(to, r.Access)
	case Revoke:
		return binary.BigEndian.AppendUint64(to, m.ID)
	case Credit:
		return binary.BigEndian.AppendUint64(to, m.Count)
	case Notify:
		to = binary.BigEndian.AppendUint16(to, uint16(len(m.Name)))
		return append(append(to, m.Name...), m.Data...)
	case Bye:
		return append(to, m.Reason)
	}
	return to
}

// Decode fills m from a message. The error is [ErrVersion] or [ErrMalformed].
func (m *Message) Decode(b []byte) error {
	if len(b) < headerLen || b[3] != 0 || b[2] > 1 {
		return ErrMalformed
	}
	if b[0] != Version {
		return ErrVersion
	}
	*m = Message{Kind: Kind(b[1]), Known: b[2] == 1, Number: binary.BigEndian.Uint32(b[4:])}
	b = b[headerLen:]
	switch m.Kind {
	case Lookup:
		m.Name = b
		return when(len(b) >= 1 && len(b) <= MaxName)
	case Found:
		return m.found(b)
	case Revoke:
		return number(b, &m.ID)
	case Credit:
		return number(b, &m.Count)
	case Notify:
		return m.notify(b)
	case Bye:
		if len(b) != 1 {
			return ErrMalformed
		}
		m.Reason = b[0]
		return nil
	}
	return ErrMalformed
}

func (m *Message) found(b []byte) error {
	if len(b) != regionLen {
		return ErrMalformed
	}
	r := &m.Region
	r.ID, r.Generation, r.RKey = binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])
	r.Addr, r.Len, r.Access = binary.BigEndian.Uint64(b[16:]), binary.BigEndian.Uint64(b[24:]), binary.BigEndian.Uint32(b[32:])
	return when(r.Addr+r.Len >= r.Addr) // wraps otherwise
}

func (m *Message) notify(b []byte) error {
	if len(b) < 2 {
		return ErrMalformed
	}
	n := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	if n > MaxNotify || n > len(b) || len(b)-n > MaxNotify {
		return ErrMalformed
	}
	m.Name, m.Data = b[:n:n], b[n:]
	return nil
}

func number(b []byte, n *uint64) error {
	if len(b) != 8 {
		return ErrMalformed
	}
	*n = binary.BigEndian.Uint64(b)
	return nil
}

func when(ok bool) error {
	if ok {
		return nil
	}
	return ErrMalformed
}
