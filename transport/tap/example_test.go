package tap_test

import (
	"bytes"
	"fmt"
	"net/netip"

	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/sim"
	"github.com/gohixl/hixl/transport/tap"
)

// The file of a real capture would be an os.File, closed after the tap.
func ExampleWrap() {
	network := sim.New(sim.Config{})
	host, _ := network.Host(netip.MustParseAddr("10.0.0.1"))

	var file bytes.Buffer
	conn := tap.Wrap(host, &file, tap.Config{})
	_, _ = conn.WriteBatch([]transport.Tx{{Data: make([]byte, 64), Dst: netip.MustParseAddr("10.0.0.2")}})
	fmt.Println(conn.Close(), file.Len() > 0)
	// Output: <nil> true
}
