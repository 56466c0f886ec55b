package udp

import (
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"
)

// Source ports of RoCEv2 lie in 0xC000..0xFFFF (§1.4).
const (
	portBase  = 0xc000
	portCount = 0x4000
	portTries = 256
)

// ports are the source ports of a Conn, by lane.
type ports []uint16

// lane returns the lane for a wanted port: its owner, or any that stays the same.
func (p ports) lane(want uint16) int {
	if i := slices.Index(p, want); i >= 0 {
		return i
	}
	// Fibonacci hashing; the high half is the well mixed one.
	return int(uint32(want)*0x9e3779b1>>16) % len(p)
}

// openPort calls open with ports of the RoCEv2 range until one is free.
func openPort(open func(port uint16) error) error {
	var err error
	for range portTries {
		err = open(uint16(portBase + rand.IntN(portCount)))
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
	return err
}
