package udp

import (
	"errors"
	"math/rand/v2"
	"syscall"
)

// Source ports of RoCEv2 lie in 0xC000..0xFFFF (§1.4).
const (
	portBase  = 0xc000
	portCount = 0x4000
	portTries = 256
)

// ports are the source ports of a Conn, by lane: port i is i modulo their number.
// So is the lane of a wanted port, whose low bits thus choose it.
type ports []uint16

func (p ports) lane(want uint16) int { return int(want) % len(p) }

// openPort calls open with ports of the RoCEv2 range that belong to a lane of
// several, until one is free.
func openPort(lane, lanes int, open func(port uint16) error) error {
	var err error
	first := (lane - portBase%lanes + lanes) % lanes
	for range portTries {
		err = open(uint16(portBase + first + lanes*rand.IntN((portCount-first+lanes-1)/lanes)))
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
	return err
}
