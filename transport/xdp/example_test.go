package xdp_test

import (
	"fmt"
	"log"
	"net/netip"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport/xdp"
)

// A NIC on raw frames differs from one on sockets in how its transport is opened.
func Example() {
	conn, err := xdp.Open(netip.MustParseAddr("10.0.0.1"), xdp.Config{
		Notify: func(e xdp.Event) { log.Print(e) },
	})
	if err != nil {
		log.Fatal(err) // it says what is missing: a capability, the link, the driver
	}
	nic, err := hixl.OpenNIC(hixl.Config{Transport: conn})
	if err != nil {
		log.Fatal(err)
	}
	defer nic.Close()
	fmt.Println(conn.Info().Mode, nic.MTU())
}
