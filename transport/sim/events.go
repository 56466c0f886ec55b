package sim

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"net/netip"

	"github.com/gohixl/hixl/internal/mono"
)

// event is one packet on its way.
type event struct {
	at  mono.Time
	seq uint64 // order of sending decides between equal times
	key linkKey
	f   *frame
}

// eventHeap is a binary heap of events, earliest first. container/heap would
// allocate for each event.
type eventHeap []event

func (h eventHeap) less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}

func (h *eventHeap) push(e event) {
	*h = append(*h, e)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s.less(i, parent) {
			break
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

// pop takes the earliest event out of a heap that is not empty.
func (h *eventHeap) pop() event {
	s := *h
	top := s[0]
	last := len(s) - 1
	s[0], s[last] = s[last], event{}
	s = s[:last]
	*h = s
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(s) && s.less(child, least) {
				least = child
			}
		}
		if least == i {
			return top
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}

// trace is a running hash over what happens. It need not be strong, only the
// same for the same run.
type trace struct{ h uint64 }

func (t *trace) add(what byte, at mono.Time, key linkKey, data []byte) {
	t.mix(uint64(what)<<56 ^ uint64(at))
	t.addr(key.src)
	t.addr(key.dst)
	t.mix(uint64(len(data))<<32 | uint64(crc32.ChecksumIEEE(data)))
}

func (t *trace) addr(a netip.Addr) {
	b := a.As16()
	t.mix(binary.BigEndian.Uint64(b[:]))
	t.mix(binary.BigEndian.Uint64(b[8:]))
}

func (t *trace) mix(v uint64) {
	// The multiplier of SplitMix64.
	t.h = bits.RotateLeft64((t.h^v)*0xbf58476d1ce4e5b9, 31)
}
