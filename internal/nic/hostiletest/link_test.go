package hostiletest

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/sim"
	"github.com/gohixl/hixl/transport/udp"
)

// link is what joins the NIC with the test: a simulated network, or sockets. Time
// is the test's own on both.
type link struct {
	open    func(netip.Addr) transport.Conn
	now     func() mono.Time
	advance func(to mono.Time)
	addr    func(host int) netip.Addr
	hidden  bool // IPv4 identifications cannot be seen
	fixedID bool // and are 0
	sockets bool // packets take their time, and batches are the system's
}

func simulated(t testing.TB, cfg sim.Config, v6 bool) link {
	net := sim.New(cfg)
	t.Cleanup(func() { _ = net.Close() })
	return link{
		open: func(a netip.Addr) transport.Conn {
			c, err := net.Host(a)
			require.NoError(t, err)
			return c
		},
		now: net.Now, advance: net.Advance, hidden: cfg.HideHeaders,
		addr: func(host int) netip.Addr {
			if v6 {
				return netip.AddrFrom16([16]byte{0xFD, 15: byte(host + 1)})
			}
			return netip.AddrFrom4([4]byte{10, 0, 0, byte(host + 1)})
		},
	}
}

func overSockets(t testing.TB) link {
	now := mono.Time(time.Second)
	return link{
		open: func(a netip.Addr) transport.Conn {
			c, err := udp.Open(a, udp.Config{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() }) // after a failure it is the first time
			return c
		},
		now:     func() mono.Time { return now },
		advance: func(to mono.Time) { now = max(now, to) },
		addr:    func(host int) netip.Addr { return netip.AddrFrom4([4]byte{127, 91, 0, byte(host + 1)}) },
		hidden:  true, fixedID: true, sockets: true,
	}
}

// hostAt is an address from which the test sends by hand.
type hostAt struct {
	conn transport.Conn
	addr netip.Addr
	rx   []transport.Rx
}

func (l *link) host(i int) *hostAt {
	h := &hostAt{conn: l.open(l.addr(i)), addr: l.addr(i)}
	h.rx = transport.NewBatch(h.conn, 64)
	return h
}
