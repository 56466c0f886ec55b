package perf

import (
	"bytes"
	"fmt"

	"github.com/gohixl/hixl/internal/tools"
)

// canary is what a place holds where something is to arrive.
const canary = 0xc5

// period is after how many bytes the pattern begins anew: a prime, so that offsets
// that are a multiple of any power of two apart differ.
const period = 65521

// pattern writes what an end of this package sends: bytes that follow from its
// seed, the queue pair and the offset.
func pattern(b []byte, seed uint32, qp int) {
	x := seed ^ uint32(qp+1)*0x9e3779b9
	for i := range b[:min(len(b), period)] {
		h := (x + uint32(i)) * 0x85ebca6b
		b[i] = byte(h>>24 ^ h>>11)
	}
	repeat(b, period)
}

// fill sets all bytes to a value.
func fill(b []byte, v byte) {
	if len(b) > 0 {
		b[0] = v
		repeat(b, 1)
	}
}

// repeat continues b with its first n bytes.
func repeat(b []byte, n int) {
	for ; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// comparer looks at what arrived from the peer.
type comparer struct {
	seed  uint32
	known bool // what the peer sends
}

// message compares one message at an offset of the peer's area; with an unknown
// peer it must just have changed the canary.
func (c *comparer) message(where string, got []byte, qp, offset int) error {
	if !c.known {
		if len(got) >= 8 && bytes.Count(got, []byte{canary}) == len(got) {
			return &tools.DataError{Where: where, Problem: "nothing arrived"}
		}
		return nil
	}
	want := make([]byte, offset+len(got))
	pattern(want, c.seed, qp)
	return tools.CompareBytes(where, got, want[offset:])
}

// messages compares the messages of a size at the first places of a walk. For
// sends every message is the start of the peer's area; others lie at the same
// offset at both ends.
func (c *comparer) messages(area []byte, qp, size int, w steps, skip int, places uint64, send bool) error {
	for n := range min(places, uint64(w.count)) {
		at := w.at(n)
		offset := at
		if send {
			offset = 0
		}
		where := fmt.Sprintf("queue pair %d, %d bytes at %d", qp+1, size, at)
		if err := c.message(where, area[at+skip:at+skip+size], qp, offset); err != nil {
			return err
		}
	}
	return nil
}
