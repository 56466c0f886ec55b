package nic

import (
	"sync"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// maxHeld bounds the packets of a queue pair that wait for late memory or behind
// one that does. With fewer than batchPackets places free it is not drained.
const maxHeld = 2 * batchPackets

// heldPacket is a packet on its way out whose payload comes later, or that must
// not overtake one. Its buffer is the memory's until ready.
type heldPacket struct {
	buf   []byte // header, payload, pad, room for the ICRC
	drain uint64
	gen   uint32
	route *route
	tos   uint8
	ready bool
	dead  bool // not to be sent: a payload before it could not be read

	// What the engine is told when the packet's turn has come, so that it hears of
	// the first failure first.
	token   uint64
	late    bool
	outcome wr.Outcome
}

// held is the FIFO of a queue pair, guarded by its lock. Its ring is made when it
// is first needed: queue pairs over host memory never do.
type held struct {
	ring    []*heldPacket
	head, n int
}

func (h *held) empty() bool { return h.n == 0 }

// room reports whether a whole batch fits.
func (h *held) room() bool { return maxHeld-h.n >= batchPackets }

func (h *held) at(i int) *heldPacket { return h.ring[(h.head+i)%maxHeld] }

func (h *held) push(p *heldPacket) {
	if h.ring == nil {
		h.ring = make([]*heldPacket, maxHeld)
	}
	h.ring[(h.head+h.n)%maxHeld] = p
	h.n++
}

// ready reports whether the oldest packet can go.
func (h *held) ready() bool { return h.n > 0 && h.at(0).ready }

func (h *held) pop() *heldPacket {
	p := h.ring[h.head]
	h.ring[h.head] = nil
	h.head = (h.head + 1) % maxHeld
	h.n--
	return p
}

// kill drops all that waits: a payload before it could not be read, so the peer
// would see a gap.
func (h *held) kill() {
	for i := range h.n {
		h.at(i).dead = true
	}
}

// left returns the newest drain all of whose packets have left, newest being the
// newest there was.
func (h *held) left(newest uint64) uint64 {
	if h.n == 0 {
		return newest
	}
	return h.at(0).drain - 1
}

// heldPool keeps packets for reuse.
type heldPool struct {
	mu    sync.Mutex
	spare []*heldPacket // guarded by mu
}

// keepHeld bounds the spare packets, some 4 MiB.
const keepHeld = 1024

// maxPacket is the largest packet from BTH to ICRC.
const maxPacket = roce.MaxMTU + roce.MaxHeaderLen + roce.ICRCLen

// get returns a packet with a buffer of size bytes.
func (p *heldPool) get(size int) *heldPacket {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.spare); n > 0 {
		e := p.spare[n-1]
		p.spare = p.spare[:n-1]
		if cap(e.buf) >= size {
			*e = heldPacket{buf: e.buf[:size]}
			return e
		}
	}
	return &heldPacket{buf: make([]byte, size, max(size, maxPacket))}
}

func (p *heldPool) put(e *heldPacket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.spare) < keepHeld {
		p.spare = append(p.spare, e)
	}
}
