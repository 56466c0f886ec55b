package xdp_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/xdp"
	"github.com/gohixl/hixl/transport/xdp/veth"
)

// heard collects events.
type heard struct {
	mu  sync.Mutex
	all []xdp.Event
}

func (h *heard) notify(e xdp.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, e)
}

// wait waits for an event and forgets those up to it.
func (h *heard) wait(t testing.TB, k xdp.EventKind) xdp.Event {
	t.Helper()
	var found xdp.Event
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i, e := range h.all {
			if e.Kind == k {
				found, h.all = e, h.all[i+1:]
				return true
			}
		}
		return false
	}, patience, time.Millisecond, "%v", k)
	return found
}

func linkAt(t testing.TB, p *veth.Pair, i int) netlink.Link {
	t.Helper()
	l, err := p.Handle(i).LinkByName(veth.Links[i])
	require.NoError(t, err)
	return l
}

// A link that goes down and comes back stalls transfers, which then go on.
func TestLinkFlap(t *testing.T) {
	p := lab(t, veth.Config{})
	var h heard
	a, b := openAt(t, p, 0, veth.Addrs4[0], xdp.Config{Notify: h.notify}), openAt(t, p, 1, veth.Addrs4[1], xdp.Config{})
	x, y := joined(t, a, b)
	allSizes(t, x, y)
	for range 3 {
		require.NoError(t, p.Handle(0).LinkSetDown(linkAt(t, p, 0)))
		h.wait(t, xdp.LinkDown)
		lost := a.Stats().TxUnreachable
		_, err := a.WriteBatch([]transport.Tx{{Data: []byte("lost"), Dst: b.LocalAddr()}})
		require.NoError(t, err)
		require.Greater(t, a.Stats().TxUnreachable, lost)
		done := make(chan error, 1)
		go func() { done <- x.transfer(64 << 10) }()
		time.Sleep(20 * time.Millisecond) // the transfer stalls
		require.Empty(t, done)
		require.NoError(t, p.Handle(0).LinkSetUp(linkAt(t, p, 0)))
		h.wait(t, xdp.LinkUp)
		require.NoError(t, <-done)
	}
	settled(t, a)
	settled(t, b)
}

// Neighbours that expire, or change their hardware address, are resolved again.
func TestNeighbourChanges(t *testing.T) {
	for _, addrs := range [][2]netip.Addr{veth.Addrs4, veth.Addrs6} {
		t.Run(addrs[0].String(), func(t *testing.T) {
			p := lab(t, veth.Config{})
			var h heard
			a, b := openAt(t, p, 0, addrs[0], xdp.Config{}), openAt(t, p, 1, addrs[1], xdp.Config{Notify: h.notify})
			x, y := joined(t, a, b)
			allSizes(t, x, y)
			l := linkAt(t, p, 0)
			expire := func() bool {
				err := p.Handle(0).NeighDel(&netlink.Neigh{LinkIndex: l.Attrs().Index, IP: addrs[1].AsSlice()})
				require.True(t, err == nil || errors.Is(err, unix.ENOENT), "%v", err)
				return err == nil
			}
			for range 5 {
				// Each time it was resolved anew, as soon as its end was heard of.
				require.Eventually(t, func() bool {
					require.NoError(t, x.transfer(4096))
					return expire()
				}, patience, time.Millisecond)
			}
			mac := net.HardwareAddr{2, 0x77, 0, 0, 0, 9}
			require.NoError(t, p.Handle(1).LinkSetHardwareAddr(linkAt(t, p, 1), mac))
			h.wait(t, xdp.MACChanged)
			require.NoError(t, p.Handle(0).NeighSet(&netlink.Neigh{
				LinkIndex: l.Attrs().Index, IP: addrs[1].AsSlice(), HardwareAddr: mac, State: netlink.NUD_REACHABLE,
			}))
			require.NoError(t, x.transfer(4096))
			require.NoError(t, y.transfer(4096))
			settled(t, a)
		})
	}
}

// Packets to somebody who does not answer wait, a bounded number of them, and are
// dropped and counted in the end.
func TestSilentNeighbour(t *testing.T) {
	p := lab(t, veth.Config{})
	a := openAt(t, p, 0, veth.Addrs4[0], xdp.Config{})
	const count = 3000
	batch := make([]transport.Tx, count)
	for i := range batch {
		batch[i] = transport.Tx{Data: []byte("anybody there?"), Dst: netip.MustParseAddr("10.77.0.200")}
	}
	n, err := a.WriteBatch(batch)
	require.NoError(t, err)
	require.Equal(t, count, n)
	require.NotZero(t, a.Info().Resolving)
	require.LessOrEqual(t, a.Info().Resolving, 1024)
	require.Eventually(t, func() bool { return a.Info().Resolving == 0 }, patience, 5*time.Millisecond)
	require.EqualValues(t, count-1, a.Stats().TxUnreachable, "all but the one that the kernel took")
	require.EqualValues(t, count-1, a.Info().Unresolved)
	settled(t, a)
}

// Without a route packets are loss; with one through a gateway, or on another link,
// they leave.
func TestRoutes(t *testing.T) {
	p := lab(t, veth.Config{})
	far := netip.MustParseAddr("198.51.100.7")
	a := openAt(t, p, 0, veth.Addrs4[0], xdp.Config{})
	send := func() {
		_, err := a.WriteBatch([]transport.Tx{{Data: []byte("far away"), Dst: far}})
		require.NoError(t, err)
	}
	send()
	require.Eventually(t, func() bool { send(); return a.Stats().TxUnreachable > 2 }, patience, time.Millisecond)

	// The other end has the address and is the gateway.
	l := linkAt(t, p, 1)
	require.NoError(t, p.Handle(1).AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: far.AsSlice(), Mask: net.CIDRMask(32, 32)}}))
	b := openAt(t, p, 1, far, xdp.Config{})
	require.NoError(t, p.Handle(0).RouteAdd(&netlink.Route{
		Dst: &net.IPNet{IP: far.AsSlice(), Mask: net.CIDRMask(32, 32)}, Gw: veth.Addrs4[1].AsSlice(),
	}))
	slots := transport.NewBatch(b, 8)
	require.Eventually(t, func() bool {
		send()
		n, err := b.ReadBatch(slots, false)
		require.NoError(t, err)
		return n > 0 && string(slots[0].Data) == "far away"
	}, patience, time.Millisecond)

	// To ourselves by the kernel, which is how it comes back too.
	_, err := a.WriteBatch([]transport.Tx{{Data: []byte("myself"), Dst: a.LocalAddr(), SrcPort: 0xc007, TOS: 2}})
	require.NoError(t, err)
	slots = transport.NewBatch(a, 8)
	n, err := a.ReadBatch(slots, true)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, "myself", string(slots[0].Data))
	require.EqualValues(t, 0xc007, slots[0].SrcPort)
	require.EqualValues(t, 2, slots[0].TOS)
}

// A smaller MTU refuses what does not fit, and is told.
func TestMTUChange(t *testing.T) {
	p := lab(t, veth.Config{MTU: 3000})
	var h heard
	a, b := openAt(t, p, 0, veth.Addrs4[0], xdp.Config{Notify: h.notify}), openAt(t, p, 1, veth.Addrs4[1], xdp.Config{})
	send := func(n int) error {
		_, err := a.WriteBatch([]transport.Tx{{Data: make([]byte, n), Dst: b.LocalAddr()}})
		return err
	}
	require.NoError(t, send(2900))
	for _, mtu := range []int{1400, 2000, 9000} {
		require.NoError(t, p.Handle(0).LinkSetMTU(linkAt(t, p, 0), mtu))
		e := h.wait(t, xdp.MTUChanged)
		require.Equal(t, min(mtu, 3000), e.MTU)
		require.Equal(t, veth.Links[0], e.Interface)
		require.Equal(t, 3000, a.Caps().MTU)
		// Paths follow when the event was told.
		want := transport.MTUError{Dst: b.LocalAddr(), Bytes: e.MTU + 1, MTU: e.MTU}
		require.Eventually(t, func() bool {
			var too *transport.MTUError
			return errors.As(send(e.MTU-27), &too) && *too == want
		}, patience, time.Millisecond)
		require.Eventually(t, func() bool { return send(e.MTU-28) == nil }, patience, time.Millisecond)
	}
}

// An address that is taken away stops sending, until it is back; a link that is
// removed ends the Conn.
func TestAddressAndLinkGone(t *testing.T) {
	p := lab(t, veth.Config{})
	var h heard
	a, b := openAt(t, p, 0, veth.Addrs4[0], xdp.Config{Notify: h.notify}), openAt(t, p, 1, veth.Addrs4[1], xdp.Config{})
	exchange(t, a, b)
	l := linkAt(t, p, 0)
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: veth.Addrs4[0].AsSlice(), Mask: net.CIDRMask(24, 32)}}
	require.NoError(t, p.Handle(0).AddrDel(l, addr))
	h.wait(t, xdp.AddressLost)
	before := a.Stats()
	_, err := a.WriteBatch([]transport.Tx{{Data: []byte("not ours"), Dst: b.LocalAddr()}})
	require.NoError(t, err)
	require.Equal(t, before.TxUnreachable+1, a.Stats().TxUnreachable)
	require.NoError(t, p.Handle(0).AddrAdd(l, addr))
	h.wait(t, xdp.AddressBack)
	exchange(t, a, b)

	waited := make(chan error, 1)
	go func() { waited <- a.WaitRead() }()
	require.NoError(t, p.Handle(0).LinkDel(l))
	h.wait(t, xdp.LinkGone)
	require.ErrorIs(t, <-waited, xdp.ErrLinkGone)
	_, err = a.ReadBatch(transport.NewBatch(a, 1), true)
	var gone *xdp.LinkError
	require.ErrorAs(t, err, &gone)
	require.Equal(t, veth.Links[0], gone.Interface)
	_, err = a.WriteBatch([]transport.Tx{{Data: []byte("gone"), Dst: b.LocalAddr()}})
	require.ErrorIs(t, err, xdp.ErrLinkGone)
	require.NoError(t, a.Close())
	_, err = a.WriteBatch(nil)
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestNames(t *testing.T) {
	require.Equal(t, "eth0: link down, MTU 1500", fmt.Sprint(xdp.Event{Kind: xdp.LinkDown, Interface: "eth0", MTU: 1500}))
	require.Equal(t, "event 99", xdp.EventKind(99).String())
	require.Equal(t, "native", xdp.ModeNative.String())
	require.Equal(t, "mode 9", xdp.Mode(9).String())
}

func TestDescribe(t *testing.T) {
	p := lab(t, veth.Config{})
	require.NoError(t, p.Do(0, func() error {
		require.Contains(t, xdp.Describe("lo"), "loopback")
		require.Contains(t, xdp.Describe("nowhere"), "not found")
		require.Equal(t, "native, the kernel copies; readers look for packets for up to 50µs before they sleep", xdp.Describe(veth.Links[0]))
		return nil
	}))
	openAt(t, p, 0, veth.Addrs4[0], xdp.Config{})
	require.NoError(t, p.Do(0, func() error {
		require.Regexp(t, "^native, the kernel copies; readers look [^;]*; taken: program [0-9]+ is on it$", xdp.Describe(veth.Links[0]))
		if err := drop([]int{unix.CAP_NET_RAW}); err != nil {
			return err
		}
		require.Contains(t, xdp.Describe(veth.Links[0]), "lacks CAP_NET_RAW")
		return nil
	}))
}
