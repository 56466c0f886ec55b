package main

import (
	"net/netip"

	"github.com/spf13/pflag"

	"github.com/gohixl/hixl/internal/tools"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/xdp"
)

// nicFlags is the flags that say where a tool's NIC is, and on what.
type nicFlags struct{ local, transport, mode string }

func (n *nicFlags) add(f *pflag.FlagSet) {
	f.StringVar(&n.local, "local", "", "address of this side's NIC (default: the one the connection to the peer has here; a server by RDMA CM takes this host's first)")
	f.StringVar(&n.transport, "transport", "udp", "what carries this side's packets: udp, or xdp for AF_XDP, which needs root and an Ethernet link")
	f.StringVar(&n.mode, "xdp-mode", "auto", "where the XDP program runs: native, generic, or auto for native where the driver has it")
}

// set reads them.
func (n *nicFlags) set(o *tools.Common) error {
	if err := n.setCarrier(o); err != nil || n.local == "" {
		return err
	}
	a, err := netip.ParseAddr(n.local)
	if err != nil {
		return &tools.OptionError{Option: "--local", Value: n.local, Allowed: "an IP address of this host, such as 10.0.0.1 or fe80::1%eth0"}
	}
	o.Local = a.Unmap()
	return nil
}

func (n *nicFlags) setCarrier(o *tools.Common) error {
	mode, ok := xdp.ParseMode(n.mode)
	if !ok {
		return &tools.OptionError{Option: "--xdp-mode", Value: n.mode, Allowed: "auto, native or generic"}
	}
	switch n.transport {
	case "udp":
	case "xdp":
		o.Carrier = func(addr netip.Addr) (transport.Conn, error) { return xdp.Open(addr, xdp.Config{Mode: mode}) }
	default:
		return &tools.OptionError{Option: "--transport", Value: n.transport, Allowed: "udp or xdp"}
	}
	return nil
}
