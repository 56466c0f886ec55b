package main

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/gohixl/hixl/bench"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/xdp"
	"github.com/gohixl/hixl/transport/xdp/veth"
)

// carrier is the flags that choose what carries the packets.
type carrier struct {
	transport string
	mode      string
	spin      time.Duration
	netns     bool
	linkMTU   int
}

const defaultLinkMTU = 1500

func (k *carrier) flags(f *pflag.FlagSet) {
	f.StringVar(&k.transport, "transport", "udp", "what carries the packets: udp, or xdp for AF_XDP, which needs root and an Ethernet link")
	f.StringVar(&k.mode, "xdp-mode", "auto", "where the XDP program runs: native, generic, or auto for native where the driver has it")
	f.DurationVar(&k.spin, "xdp-spin", xdp.DefaultSpin, "how long a wait for packets of --transport xdp may look at the rings before it sleeps, while packets come thick, 0 for never to 1ms; both sides")
}

func (k *carrier) netFlags(f *pflag.FlagSet) {
	f.BoolVar(&k.netns, "netns", false, "run the two sides in network namespaces of their own, joined by a virtual link that goes with them (Linux, root)")
	f.IntVar(&k.linkMTU, "link-mtu", defaultLinkMTU, "MTU of the link of --netns, 576 to 9000")
}

// opener returns what opens the carrier.
func (k *carrier) opener() (bench.Opener, error) {
	mode, ok := xdp.ParseMode(k.mode)
	if !ok {
		return nil, &bench.FlagError{Flag: "xdp-mode", Given: fmt.Sprintf("%q", k.mode), Allowed: "auto, native or generic", Do: "leave it out for auto"}
	}
	switch {
	case k.spin < 0 || k.spin > xdp.MaxSpin:
		return nil, &bench.FlagError{Flag: "xdp-spin", Given: k.spin.String(), Allowed: "0 to 1ms", Do: "leave it out for 50us"}
	case k.spin != xdp.DefaultSpin && k.transport != "xdp":
		return nil, &bench.FlagError{Flag: "xdp-spin", Given: k.spin.String(), Allowed: "only with --transport xdp", Do: "add that, or leave it out"}
	}
	switch k.transport {
	case "udp":
		return nil, nil
	case "xdp":
		cfg := xdp.Config{Mode: mode, Spin: k.spin}
		if k.spin == 0 {
			cfg.Spin = xdp.SpinOff
		}
		return func(addr netip.Addr) (transport.Conn, error) { return xdp.Open(addr, cfg) }, nil
	}
	return nil, &bench.FlagError{Flag: "transport", Given: fmt.Sprintf("%q", k.transport), Allowed: "udp or xdp", Do: "leave it out for udp"}
}

// config fills in what the flags mean.
func (k *carrier) config(cfg *bench.Config, serve bool) error {
	open, err := k.opener()
	if err != nil {
		return err
	}
	cfg.Carrier, cfg.Transport = open, k.transport
	if serve {
		return nil
	}
	bad := func(flag, given, allowed, do string) error {
		return &bench.FlagError{Flag: flag, Given: given, Allowed: allowed, Do: do}
	}
	switch {
	case k.linkMTU != defaultLinkMTU && !k.netns:
		return bad("link-mtu", fmt.Sprint(k.linkMTU), "only with --netns", "add --netns, or leave it out")
	case k.netns && (k.linkMTU < 576 || k.linkMTU > 9000):
		return bad("link-mtu", fmt.Sprint(k.linkMTU), "576 to 9000", "give 1500 or 9000")
	case k.netns && (cfg.InProcess || cfg.Peer != "" || cfg.Local.IsValid()):
		return bad("netns", "with --in-process, --peer or --local", "two processes, each in a namespace with an address of its own", "leave the other flag out")
	case !k.netns && open != nil && cfg.Peer == "":
		return bad("transport", "xdp on one host", "two hosts, with --serve there and --peer here, or --netns", "add --netns, which makes two namespaces")
	}
	if !k.netns {
		return nil
	}
	cfg.Local, cfg.PeerLocal = veth.Addrs4[0], veth.Addrs4[1]
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program to start it again: %w", err)
	}
	cfg.PeerCommand = []string{self, "peer", "--transport", k.transport, "--xdp-mode", k.mode, "--xdp-spin", k.spin.String()}
	cfg.PeerStart = startThere
	return nil
}
