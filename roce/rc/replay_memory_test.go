package rc_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce/wr"
)

const allAccess = mr.LocalWrite | mr.RemoteWrite | mr.RemoteRead | mr.RemoteAtomic

// memory is what an end's memory looks like when the recording begins, and who
// may reach it.
type memory struct {
	bytes    []byte
	regions  []region
	local    []int     // where message i of this end has its bytes
	receives []stretch // of the messages of the other end that take one
}

// region is memory that the other end reaches by a key of the recording.
type region struct {
	key    uint32
	va     uint64
	at     stretch
	access mr.Access
}

// stretch is a part of an end's memory.
type stretch struct{ off, n int }

func (m *memory) in(s stretch) []byte { return m.bytes[s.off : s.off+s.n] }

// allocate adds n bytes, aligned to 8.
func (m *memory) allocate(n int) stretch {
	s := stretch{len(m.bytes), n}
	m.bytes = append(m.bytes, make([]byte, (n+7)&^7)...)
	return s
}

// find returns the bytes that a key and an address name.
func (m *memory) find(key uint32, va uint64, n int) []byte {
	for _, r := range m.regions {
		if r.key == key && va >= r.va && va+uint64(n) <= r.va+uint64(r.at.n) {
			off := r.at.off + int(va-r.va)
			return m.bytes[off : off+n]
		}
	}
	return nil
}

// memoryOf lays out an end's memory.
func (c *connection) memoryOf(t testing.TB, end side) *memory {
	t.Helper()
	if c.script != nil {
		return c.script.memoryOf(end, c.sends[end], c.sends[end.other()])
	}
	return c.toolMemory(t, end)
}

// memoryOf is vt's: one buffer, from its start, for everything. The key that
// SEND with invalidate names is a memory window's; ours is a region of its own
// that may be invalidated. rxe gives the key 0 to a region without remote
// rights; ours has a key, and it is the rights that refuse.
func (s *script) memoryOf(end side, own, peers []message) *memory {
	m := &memory{}
	size := max(s.options[end]["s"], 64)
	all := m.allocate(size + 40)
	first := byte(0)
	if end == active {
		first = 0x80
	}
	copy(m.in(all), counting(first, all.n))
	m.local = make([]int, len(own))
	if end == active {
		return m
	}
	r := region{key: s.ends[end].rkey, va: s.ends[end].addr, at: all, access: mr.Access(s.options[end]["F"])}
	if s.op == "sendinv" {
		r.access |= mr.RemoteInvalidate
	}
	m.regions = append(m.regions, r)
	n := size
	if s.options[end]["S"] >= 0 {
		n = s.options[end]["S"]
	}
	for i := range peers {
		if peers[i].consumes() {
			m.receives = append(m.receives, stretch{0, n})
		}
	}
	return m
}

// toolMemory is made up from the capture: every message has its own local
// buffer or receive, and words have the values that the first atomics found. What
// READs find is put there when they come (see endpoint.store).
func (c *connection) toolMemory(t testing.TB, end side) *memory {
	t.Helper()
	m := &memory{}
	for i := range c.sends[end] {
		w := &c.sends[end][i]
		s := m.allocate(w.length)
		copy(m.in(s), w.data)
		m.local = append(m.local, s.off)
	}
	peers := c.sends[end.other()]
	for i := range peers {
		w := &peers[i]
		if w.consumes() {
			m.receives = append(m.receives, m.allocate(w.length))
		}
		if w.rkey != 0 {
			m.cover(w)
		}
	}
	for i := range m.regions {
		r := &m.regions[i]
		r.at = m.allocate(r.at.n)
	}
	for i := len(peers) - 1; i >= 0; i-- { // the first atomic on a word wins
		if w := &peers[i]; w.op.Atomic() {
			data := c.returned(end.other(), w)
			require.NotNil(t, data)
			copy(m.find(w.rkey, w.va, w.length), data)
		}
	}
	return m
}

// cover makes the region that a message names large enough for it.
func (m *memory) cover(w *message) {
	lo, hi := w.va&^7, w.va+uint64(w.length)
	for i := range m.regions {
		r := &m.regions[i]
		if r.key == w.rkey {
			hi = max(hi, r.va+uint64(r.at.n))
			r.va = min(r.va, lo)
			r.at.n = int(hi - r.va)
			return
		}
	}
	m.regions = append(m.regions, region{key: w.rkey, va: lo, at: stretch{n: int(hi - lo)}, access: allAccess})
}

// after is the memory of an end when everything that succeeded in the recording
// has been carried out.
func (c *connection) after(t testing.TB, end side) []byte {
	t.Helper()
	m := c.memoryOf(t, end)
	receives := m.receives
	for i := range c.sends[end.other()] {
		w := &c.sends[end.other()][i]
		var to stretch
		if w.consumes() {
			to, receives = receives[0], receives[1:]
		}
		if c.script == nil && w.op == wr.OpRead {
			copy(m.find(w.rkey, w.va, w.length), c.returned(end.other(), w))
		}
		if c.succeeded(end.other(), i) {
			m.apply(w, to)
		}
	}
	for i := range c.sends[end] {
		w := &c.sends[end][i]
		if w.op.TakesRead() && c.succeeded(end, i) {
			copy(m.bytes[m.local[i]:], c.returned(end, w))
		}
	}
	return m.bytes
}

// apply carries out a message of the other end; to is its receive.
func (m *memory) apply(w *message, to stretch) {
	switch w.op {
	case wr.OpWrite, wr.OpWriteImm:
		copy(m.find(w.rkey, w.va, w.length), w.data)
	case wr.OpSend, wr.OpSendImm, wr.OpSendInv:
		copy(m.in(to), w.data)
	case wr.OpFetchAdd:
		b := m.find(w.rkey, w.va, 8)
		binary.NativeEndian.PutUint64(b, binary.NativeEndian.Uint64(b)+w.swapAdd)
	case wr.OpCmpSwap:
		b := m.find(w.rkey, w.va, 8)
		if binary.NativeEndian.Uint64(b) == w.compare {
			binary.NativeEndian.PutUint64(b, w.swapAdd)
		}
	default: // a READ changes nothing
	}
}
