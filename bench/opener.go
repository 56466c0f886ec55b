package bench

import (
	"context"
	"io"
	"net/netip"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport"
)

// Opener opens what carries the packets of an address. nil opens UDP sockets.
type Opener func(addr netip.Addr) (transport.Conn, error)

// ServePeer is [ServePeer] on another carrier.
func (o Opener) ServePeer(ctx context.Context, in io.Reader, out io.Writer, local netip.Addr) error {
	p := newPeer(local)
	p.trusted, p.carrier = true, o
	defer p.close()
	return p.serve(ctx, newWire(in, out))
}

// nicOptions are how an endpoint opens its NIC.
type nicOptions struct {
	carrier    Opener
	faults     Faults
	seed       uint64 // of the faults
	noTrains   bool
	shards     int // of sockets
	lowLatency bool
}

func (o *nicOptions) open(addr netip.Addr) (*hixl.NIC, error) {
	cfg := hixl.Config{Address: addr, MaxQPs: maxOpenQPs, NoTrains: o.noTrains, OpenTransport: o.carrier, WrapTransport: o.faults.wrapper(o.seed)}
	if o.lowLatency {
		cfg.Progress = hixl.LowLatency
	}
	if o.carrier == nil {
		cfg.UDP.Shards = o.shards
	}
	return hixl.OpenNIC(cfg)
}
