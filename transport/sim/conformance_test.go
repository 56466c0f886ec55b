package sim

import (
	"context"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/transporttest"
)

// run drives n by the clock until the test ends.
func run(t *testing.T, n *Network) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = n.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

func TestConformance(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		a, b string
	}{
		{"v4", Config{}, "10.0.0.1", "10.0.0.2"},
		{"v6", Config{}, "fd00::1", "fd00::2"},
		{"hidden headers", Config{HideHeaders: true}, "10.0.0.1", "10.0.0.2"},
		{"trains", Config{Trains: 128, Link: Link{MTU: MaxMTU}}, "10.0.0.1", "10.0.0.2"},
		{"delay", Config{Link: Link{Delay: 50_000, Jitter: 20_000, Rate: 100e9}}, "10.0.0.1", "10.0.0.2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			transporttest.Run(t, func(t *testing.T) (transport.Conn, transport.Conn) {
				n := New(tt.cfg)
				run(t, n)
				a, err := n.Host(netip.MustParseAddr(tt.a))
				require.NoError(t, err)
				b, err := n.Host(netip.MustParseAddr(tt.b))
				require.NoError(t, err)
				t.Cleanup(func() { _ = n.Close() })
				return a, b
			})
		})
	}
}
