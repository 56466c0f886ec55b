package rping

import (
	"encoding/binary"
	"fmt"
)

// Letters that the ball is filled with, A to z and what ASCII has between.
const (
	firstLetter = int('A')
	lastLetter  = int('z')
)

// ball writes what the original sends in a round, counted from 0: a text, letters
// that begin one further each time, and a NUL.
func ball(b []byte, round int) {
	n := copy(b, fmt.Sprintf("rdma-ping-%d: ", round))
	const letters = lastLetter - firstLetter + 1
	for i := n; i < len(b); i++ {
		b[i] = byte(firstLetter + (round+i-n)%letters)
	}
	b[len(b)-1] = 0
}

// text is a ball up to its NUL.
func text(b []byte) []byte {
	for i, c := range b {
		if c == 0 {
			return b[:i]
		}
	}
	return b
}

// advert tells where a buffer is.
type advert struct {
	addr uint64
	rkey uint32
	size uint32
}

const advertLen = 16

func (a advert) put(b []byte) {
	binary.BigEndian.PutUint64(b, a.addr)
	binary.BigEndian.PutUint32(b[8:], a.rkey)
	binary.BigEndian.PutUint32(b[12:], a.size)
}

func parseAdvert(b []byte) advert {
	return advert{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])}
}
