package faults

import (
	"time"

	"github.com/gohixl/hixl/transport"
)

// Limits of what is held back for reordering.
const (
	// MaxHeld is how many packets are held back at most; the oldest leaves when
	// another comes.
	MaxHeld = 64
	// MaxPassing is how many packets overtake a held one at most.
	MaxPassing = 8
	// HoldTime is how long a packet is held when nothing overtakes it.
	HoldTime = time.Millisecond
)

// Config sets the faults. All are probabilities per packet, 0..1; the zero value
// has none.
type Config struct {
	Seed uint64 // of the random choices
	// Loss drops the packet.
	Loss float64
	// Duplicate sends it twice.
	Duplicate float64
	// Reorder holds it back until 1 to MaxPassing others have passed, or HoldTime.
	Reorder float64
	// Corrupt flips one bit, anywhere from the BTH to the ICRC.
	Corrupt float64
	// Trains lets the NIC send trains, whose packets have their faults one by one,
	// as on a network behind the segmentation. What follows the fault leaves as a
	// train of its own, so over IPv4 it has another identification than the one
	// it was sealed for. A receiver of ours that does not see identifications
	// finds the right one; to any other it is a damaged packet.
	Trains bool
}

func (c Config) check() error {
	for _, f := range []struct {
		name string
		p    float64
	}{
		{"faults.Config.Loss", c.Loss},
		{"faults.Config.Duplicate", c.Duplicate},
		{"faults.Config.Reorder", c.Reorder},
		{"faults.Config.Corrupt", c.Corrupt},
	} {
		if !(f.p >= 0 && f.p <= 1) { // NaN is neither
			return &transport.ConfigError{Field: f.name, Value: f.p, Allowed: "a probability, 0..1"}
		}
	}
	return nil
}

// Counts are the faults made so far, in packets.
type Counts struct {
	Lost, Duplicated, Reordered, Corrupted uint64
}
