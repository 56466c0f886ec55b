package xdp_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/transport/xdp"
	"github.com/gohixl/hixl/transport/xdp/veth"
)

// soakEnv is how long TestSoak runs, such as 10m.
const soakEnv = "HIXL_XDP_SOAK"

// TestSoak transfers while the link flaps, neighbours expire, the MTU changes, and
// hardware address and address come and go. Transfers stall and resume, or fail
// with the reason, and every byte is verified. At the end nothing is lost of the
// rings' memory.
func TestSoak(t *testing.T) {
	length := 3 * time.Second
	if s := os.Getenv(soakEnv); s != "" {
		var err error
		length, err = time.ParseDuration(s)
		require.NoError(t, err)
	}
	p := lab(t, veth.Config{})
	a, b := openAt(t, p, 0, veth.Addrs4[0], xdp.Config{}), openAt(t, p, 1, veth.Addrs4[1], xdp.Config{Mode: xdp.ModeGeneric})
	x, y := joined(t, a, b)

	quit, ended := make(chan struct{}), make(chan map[string]int)
	go func() { ended <- disturb(p, quit) }()
	transfers, bytes := 0, 0
	failures := map[string]int{}
	rng := rand.New(rand.NewPCG(7, 7))
	start := time.Now()
	for time.Since(start) < length {
		size := 8 << rng.IntN(16)
		from := []*end{x, y}[rng.IntN(2)]
		err := from.transfer(size)
		if err == nil {
			transfers, bytes = transfers+3, bytes+2*size+8
			continue
		}
		var failed *hixl.StatusError
		require.True(t, errors.As(err, &failed), "a transfer fails as its completion says: %v", err)
		require.True(t, errors.Is(err, cq.ErrRetryExceeded) || errors.Is(err, cq.ErrLocalQPOperation), "%v", err)
		failures[failed.Completion.Status.String()]++
		connect(t, x, y, hixl.ConnectOptions{})
		for _, e := range []*end{x, y} { // whether the last one counted is not known
			e.counter = binary.NativeEndian.Uint64(e.peer.src.Bytes())
		}
	}
	close(quit)
	done := <-ended
	require.Eventually(t, func() bool { // the link is as it was
		if err := x.transfer(4096); err == nil {
			return true
		}
		connect(t, x, y, hixl.ConnectOptions{})
		x.counter = binary.NativeEndian.Uint64(y.src.Bytes())
		return false
	}, patience, 10*time.Millisecond)
	require.Positive(t, transfers)
	settled(t, a)
	settled(t, b)
	t.Logf("%v: %d transfers, %d bytes verified; disturbances: %v; failures, each with its reason: %v",
		length, transfers, bytes, done, failures)
	for i, c := range []*xdp.Conn{a, b} {
		t.Logf("end %d: %+v", i, c.Accounting())
		t.Logf("end %d: %+v", i, c.Info())
		t.Logf("end %d: %+v", i, c.Stats())
	}
	require.NoError(t, x.nic.Close())
	require.NoError(t, y.nic.Close())
}

// disturb does one thing after the other to the link, until quit, and puts it right.
func disturb(p *veth.Pair, quit chan struct{}) map[string]int {
	rng := rand.New(rand.NewPCG(1, 1))
	pause := func(ms int) bool {
		select {
		case <-quit:
			return false
		case <-time.After(time.Duration(1+rng.IntN(ms)) * time.Millisecond):
			return true
		}
	}
	h := p.Handle(0)
	l, err := h.LinkByName(veth.Links[0])
	if err != nil {
		return map[string]int{err.Error(): 1}
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: veth.Addrs4[0].AsSlice(), Mask: net.CIDRMask(24, 32)}}
	things := []struct {
		name     string
		do, undo func() error
	}{
		{"link flap", func() error { return h.LinkSetDown(l) }, func() error { return h.LinkSetUp(l) }},
		{"long flap", func() error { _ = h.LinkSetDown(l); pause(2500); return nil }, func() error { return h.LinkSetUp(l) }},
		{"neighbour expiry", func() error {
			return h.NeighDel(&netlink.Neigh{LinkIndex: l.Attrs().Index, IP: veth.Addrs4[1].AsSlice()})
		}, func() error { return nil }},
		{"MTU 1300", func() error { return h.LinkSetMTU(l, 1300) }, func() error { return h.LinkSetMTU(l, 1500) }},
		{"MTU 600", func() error { return h.LinkSetMTU(l, 600) }, func() error { return h.LinkSetMTU(l, 1500) }},
		{"address away", func() error { return h.AddrDel(l, addr) }, func() error { return h.AddrAdd(l, addr) }},
		{"hardware address", func() error {
			return h.LinkSetHardwareAddr(l, net.HardwareAddr{2, 0x77, 0, 0, 0, byte(rng.IntN(255))})
		}, func() error { return nil }},
	}
	done := map[string]int{}
	for pause(300) {
		thing := things[rng.IntN(len(things))]
		_ = thing.do()
		pause(80)
		_ = thing.undo()
		done[thing.name]++
	}
	return done
}
