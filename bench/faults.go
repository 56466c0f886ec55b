package bench

import (
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/faults"
)

// wrapper returns what puts f between a NIC and its socket, nil when there are
// no faults.
func (f Faults) wrapper(seed uint64) func(transport.Conn) transport.Conn {
	if !f.any() {
		return nil
	}
	return func(c transport.Conn) transport.Conn {
		w, err := faults.Wrap(c, faults.Config{
			Seed: seed, Loss: f.Loss, Reorder: f.Reorder, Duplicate: f.Duplicate, Corrupt: f.Corrupt,
			Trains: !c.Caps().HeadersVisible,
		})
		if err != nil {
			panic(err) // validate refused what Wrap refuses
		}
		return w
	}
}
