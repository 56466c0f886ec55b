package udp

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/hosttest"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/transporttest"
)

// Addresses of this package's tests; other packages use others, since all may
// run at once.
var (
	addrA = netip.MustParseAddr("127.77.1.1")
	addrB = netip.MustParseAddr("127.77.1.2")
	addr6 = netip.MustParseAddr("::1")
)

// open opens addr and closes it after the test.
func open(t testing.TB, addr netip.Addr, cfg Config) *Conn {
	t.Helper()
	c, err := Open(addr, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestConformance4(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) (transport.Conn, transport.Conn) {
		return open(t, addrA, Config{}), open(t, addrB, Config{})
	})
}

func TestConformanceWithoutTrains(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) (transport.Conn, transport.Conn) {
		return open(t, addrA, Config{Trains: TrainsOff}), open(t, addrB, Config{Trains: TrainsOff})
	})
}

func TestConformance6(t *testing.T) {
	hosttest.NeedIPv6(t)
	transporttest.Run(t, func(t *testing.T) (transport.Conn, transport.Conn) {
		c := open(t, addr6, Config{})
		return c, c
	})
}

func portableAt(t *testing.T, addr netip.Addr) *portable {
	t.Helper()
	c, err := openPortable(addr, Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestConformancePortable(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) (transport.Conn, transport.Conn) {
		return portableAt(t, addrA), portableAt(t, addrB)
	})
}
