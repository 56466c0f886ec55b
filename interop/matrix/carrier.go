package matrix

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport/xdp"
)

// CarrierEnv has our NICs of Verbs cells on raw frames instead of sockets: "native"
// or "generic" is where the XDP program runs. Raw frames know no trains, and cells
// that want some do without.
const CarrierEnv = "HIXL_INTEROP_XDP"

var carrierModes = map[string]xdp.Mode{"native": xdp.ModeNative, "generic": xdp.ModeGeneric}

// openNIC opens our NIC on an address of the lab.
func openNIC(addr string, noTrains bool) (*hixl.NIC, error) {
	cfg := hixl.Config{Address: netip.MustParseAddr(addr), NoTrains: noTrains}
	kind := os.Getenv(CarrierEnv)
	if kind == "" {
		return hixl.OpenNIC(cfg)
	}
	mode, ok := carrierModes[kind]
	if !ok {
		return nil, fmt.Errorf("matrix: %s is %q, allowed: native, generic, or nothing for sockets", CarrierEnv, kind)
	}
	conn, err := xdp.Open(cfg.Address, xdp.Config{Mode: mode})
	if err != nil {
		return nil, err
	}
	cfg.Address, cfg.Transport = netip.Addr{}, conn
	nic, err := hixl.OpenNIC(cfg)
	if err != nil {
		_ = conn.Close() // it may be the second time
	}
	return nic, err
}
