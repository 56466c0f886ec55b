//go:build linux

package matrix

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/xdp"
)

// CarrierEnv has our ends on raw frames instead of sockets, as [ParseCarriers] reads
// it: "native", "generic", or both.
const CarrierEnv = "HIXL_INTEROP_XDP"

// Carrier is what carries our end's packets. Raw frames know no trains, and cells
// that want some do without; everything else is as on sockets.
type Carrier string

// The carriers: sockets, and raw frames with the XDP program in the driver or behind
// it.
const (
	Sockets Carrier = ""
	Native  Carrier = "native"
	Generic Carrier = "generic"
)

// ParseCarriers reads a list of carriers of raw frames with commas between; an empty
// one is sockets.
func ParseCarriers(list string) ([]Carrier, error) {
	if list == "" {
		return []Carrier{Sockets}, nil
	}
	var all []Carrier
	for word := range strings.SplitSeq(list, ",") {
		k := Carrier(word)
		if k != Native && k != Generic || slices.Contains(all, k) {
			return nil, fmt.Errorf("matrix: %q is no list of carriers: native, generic, native,generic, or nothing for sockets", list)
		}
		all = append(all, k)
	}
	return all, nil
}

// String is for the report.
func (k Carrier) String() string {
	if k == Sockets {
		return "sockets"
	}
	return "AF_XDP " + string(k)
}

// carries reports whether our end of a cell can be on it: over veth ours is in a
// guest, and where both ends are rdma_rxe there is none of ours.
func (k Carrier) carries(c *Cell, role Role) bool {
	return k == Sockets || !c.Veth && role != None
}

// flags are what our programs get.
func (k Carrier) flags() []string {
	if k == Sockets {
		return nil
	}
	return []string{"--transport", "xdp", "--xdp-mode", string(k)}
}

// openNIC opens our NIC on an address of the lab.
func (k Carrier) openNIC(addr string, noTrains bool) (*hixl.NIC, error) {
	cfg := hixl.Config{Address: netip.MustParseAddr(addr), NoTrains: noTrains}
	if k != Sockets {
		mode, _ := xdp.ParseMode(string(k)) // their names are the same
		cfg.OpenTransport = func(addr netip.Addr) (transport.Conn, error) { return xdp.Open(addr, xdp.Config{Mode: mode}) }
	}
	return hixl.OpenNIC(cfg)
}

// step is a cell in a role on a carrier.
type step struct {
	carrier Carrier
	cell    *Cell
	role    Role
}

// steps are what is selected of cells, in order.
func (s Selection) steps(cells []Cell) iter.Seq[step] {
	carriers := s.Carriers
	if len(carriers) == 0 {
		carriers = []Carrier{Sockets}
	}
	return func(yield func(step) bool) {
		for _, k := range carriers {
			for i := range cells {
				c := &cells[i]
				for _, role := range c.roles() {
					if s.takes(c, role) && k.carries(c, role) && !yield(step{k, c, role}) {
						return
					}
				}
			}
		}
	}
}
