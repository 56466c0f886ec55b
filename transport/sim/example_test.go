package sim_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/sim"
)

// A packet crosses a link of 10 µs in virtual time.
func Example() {
	net := sim.New(sim.Config{Seed: 1, Link: sim.Link{Delay: 10 * time.Microsecond}})
	a, _ := net.Host(netip.MustParseAddr("10.0.0.1"))
	b, _ := net.Host(netip.MustParseAddr("10.0.0.2"))

	_, _ = a.WriteBatch([]transport.Tx{{Data: []byte("hello"), Dst: b.LocalAddr()}})
	net.Advance(net.Next())

	slots := transport.NewBatch(b, 4)
	n, _ := b.ReadBatch(slots, false)
	fmt.Printf("%d packet after %v: %s\n", n, net.Now().Sub(sim.Start), slots[0].Data)
	// Output: 1 packet after 10µs: hello
}
