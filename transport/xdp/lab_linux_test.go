package xdp_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/transporttest"
	"github.com/gohixl/hixl/transport/udp"
	"github.com/gohixl/hixl/transport/xdp"
	"github.com/gohixl/hixl/transport/xdp/veth"
)

// lab makes two namespaces and a link between them, for as long as the test runs.
func lab(t testing.TB, cfg veth.Config) *veth.Pair {
	t.Helper()
	p, err := veth.New(cfg)
	if errors.Is(err, unix.EPERM) {
		t.Skipf("needs root: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// openAt opens a Conn at one end.
func openAt(t testing.TB, p *veth.Pair, end int, addr netip.Addr, cfg xdp.Config) *xdp.Conn {
	t.Helper()
	var c *xdp.Conn
	require.NoError(t, p.Do(end, func() (err error) {
		c, err = xdp.Open(addr, cfg)
		return err
	}))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func udpAt(t testing.TB, p *veth.Pair, end int, addr netip.Addr, cfg udp.Config) *udp.Conn {
	t.Helper()
	var c *udp.Conn
	require.NoError(t, p.Do(end, func() (err error) {
		c, err = udp.Open(addr, cfg)
		return err
	}))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// variants are enough of modes, MTUs and families to see each with each.
var variants = []struct {
	mode  xdp.Mode
	mtu   int
	addrs [2]netip.Addr
}{
	{xdp.ModeNative, 1500, veth.Addrs4},
	{xdp.ModeNative, 9000, veth.Addrs6},
	{xdp.ModeGeneric, 1500, veth.Addrs6},
	{xdp.ModeGeneric, 9000, veth.Addrs4},
}

func TestConformance(t *testing.T) {
	for _, v := range variants {
		t.Run(fmt.Sprintf("%v/%d/%v", v.mode, v.mtu, v.addrs[0]), func(t *testing.T) {
			p := lab(t, veth.Config{MTU: v.mtu})
			transporttest.Run(t, func(t *testing.T) (transport.Conn, transport.Conn) {
				a := openAt(t, p, 0, v.addrs[0], xdp.Config{Mode: v.mode})
				require.Equal(t, v.mode, a.Info().Mode)
				return a, openAt(t, p, 1, v.addrs[1], xdp.Config{Mode: v.mode})
			})
		})
	}
}

// A reader that looks before it sleeps, for long or never, hears all that others
// hear: packets on the rings and on the kernel's socket, and the end of the Conn.
func TestConformanceSpin(t *testing.T) {
	for _, spin := range []time.Duration{xdp.MaxSpin, xdp.SpinOff} {
		p := lab(t, veth.Config{})
		transporttest.Run(t, func(t *testing.T) (transport.Conn, transport.Conn) {
			cfg := xdp.Config{Spin: spin}
			return openAt(t, p, 0, veth.Addrs4[0], cfg), openAt(t, p, 1, veth.Addrs4[1], cfg)
		})
	}
}

// Sockets at one end and rings at the other understand each other, both ways.
func TestConformanceWithUDP(t *testing.T) {
	for i, v := range variants {
		t.Run(fmt.Sprintf("%v/%d/%v", v.mode, v.mtu, v.addrs[0]), func(t *testing.T) {
			p := lab(t, veth.Config{MTU: v.mtu})
			// The suite's packets have no ICRC, by which trains that nobody cut are cut:
			// see TestTrainsOfSockets.
			cfg := udp.Config{}
			if v.mode == xdp.ModeGeneric {
				cfg.Trains = udp.TrainsOff
			}
			transporttest.Run(t, func(t *testing.T) (transport.Conn, transport.Conn) {
				var a, b transport.Conn
				b = openAt(t, p, 1, v.addrs[1], xdp.Config{Mode: v.mode})
				a = udpAt(t, p, 0, v.addrs[0], cfg)
				if i%2 == 1 {
					return b, a
				}
				return a, b
			})
		})
	}
}
