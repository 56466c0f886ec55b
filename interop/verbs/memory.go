package verbs

import (
	"encoding/binary"
	"fmt"
)

const slotUnit = 64 // slots are whole multiples

// stride is the distance of slots, one a message.
func (c *Case) stride() int { return max((c.Size+slotUnit-1)/slotUnit, 1) * slotUnit }

// pattern is the byte at offset i of what an end has at first, or sends.
func pattern(active bool, i int) byte {
	seed := uint32(0x9e3779b9)
	if active {
		seed = 0x3c6ef372
	}
	return byte((uint32(i)*2654435761 + seed) >> 24)
}

// after is the value of the passive end's first word after n atomics.
func (c *Case) after(n int) uint64 {
	var b [8]byte
	for i := range b {
		b[i] = pattern(false, i)
	}
	first := binary.NativeEndian.Uint64(b[:])
	switch {
	case c.Op == "faa":
		return first + uint64(n)
	case n == 0:
		return first
	}
	return 0x1111111111111111 * uint64((n+1)/2) // every other one compares with what is not there
}

// Slots says how many slots are as the operations should leave them, as they were
// before, or neither.
type Slots struct{ Final, Initial, Mixed int }

func (s Slots) String() string {
	return fmt.Sprintf("final=%d initial=%d mixed=%d", s.Final, s.Initial, s.Mixed)
}

// image is an end's memory with what should be in it.
type image struct {
	c      *Case
	active bool
	b      []byte
}

func (m *image) fill() {
	for i := range m.b {
		m.b[i] = pattern(m.active, i)
	}
}

func (m *image) slots() (s Slots) {
	for i := range m.c.Count {
		switch {
		case m.final(i):
			s.Final++
		case m.holds(i, 0):
			s.Initial++
		default:
			s.Mixed++
		}
	}
	return s
}

// final reports whether a slot is as it should be in the end.
func (m *image) final(slot int) bool {
	if m.c.atomic() {
		word := binary.NativeEndian.Uint64(m.b[slot*m.c.stride():])
		if m.active {
			return word == m.c.after(slot)
		}
		return slot > 0 || word == m.c.after(m.c.Count)
	}
	if (m.c.Op == "read") == m.active {
		return m.holds(slot, m.c.Size)
	}
	return m.holds(slot, 0)
}

// holds reports whether the first bytes of a slot are the other end's and the
// rest its own.
func (m *image) holds(slot, others int) bool {
	at := slot * m.c.stride()
	for i := range m.c.stride() {
		if m.b[at+i] != pattern(m.active != (i < others), at+i) {
			return false
		}
	}
	return true
}
