package nictest

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/sim"
)

// Config describes a fabric.
type Config struct {
	// Hosts is the number of NICs, at least 1. Host i has the address 10.0.0.i+1,
	// or fd00::i+1 with IPv6.
	Hosts int
	IPv6  bool
	// Net is the network.
	Net sim.Config
	// Tune may change a host's configuration before it is opened.
	Tune func(host int, c *nic.Config)
}

// Fabric is a network with NICs.
type Fabric struct {
	Net  *sim.Network
	NICs []*nic.NIC

	tb   testing.TB
	late []*devicetest.Late
}

// New makes a fabric and closes it at the end of the test.
func New(tb testing.TB, cfg Config) *Fabric {
	tb.Helper()
	f := &Fabric{Net: sim.New(cfg.Net), tb: tb}
	for i := range cfg.Hosts {
		conn, err := f.Net.Host(Addr(i, cfg.IPv6))
		require.NoError(tb, err)
		c := nic.Config{Conn: conn, Clock: f.Net.Now}
		if cfg.Tune != nil {
			cfg.Tune(i, &c)
		}
		n, err := nic.Open(c)
		require.NoError(tb, err)
		f.NICs = append(f.NICs, n)
	}
	tb.Cleanup(f.Close)
	return f
}

// Addr is the address of host i.
func Addr(i int, v6 bool) netip.Addr {
	if v6 {
		return netip.MustParseAddr(fmt.Sprintf("fd00::%x", i+1))
	}
	return netip.AddrFrom4([4]byte{10, 0, byte((i + 1) >> 8), byte(i + 1)})
}

// Close closes all NICs, then the network.
func (f *Fabric) Close() {
	for _, n := range f.NICs {
		_ = n.Close()
	}
	for _, l := range f.late {
		l.Drain()
	}
	_ = f.Net.Close()
}

// Late makes a memory that finishes late and whose time is the fabric's.
func (f *Fabric) Late(cfg devicetest.LateConfig) *devicetest.Late {
	l := devicetest.NewLate(cfg)
	l.Step(f.Net.Now())
	f.late = append(f.late, l)
	return l
}

// Now is the virtual time.
func (f *Fabric) Now() mono.Time { return f.Net.Now() }

// Settle lets the NICs do everything that can be done at the present time.
func (f *Fabric) Settle() {
	for worked := true; worked; {
		worked = false
		for _, n := range f.NICs {
			worked = n.Poll(f.Net.Now()) || worked
		}
	}
}

// Step settles, then moves time to the next event. False: there is none, and
// nothing will ever happen again.
func (f *Fabric) Step() bool {
	f.Settle()
	next := f.Net.Next()
	for _, n := range f.NICs {
		next = mono.Earliest(next, n.Next())
	}
	for _, l := range f.late {
		next = mono.Earliest(next, l.Next())
	}
	if next.IsZero() {
		return false
	}
	next = max(next, f.Net.Now())
	f.Net.Advance(next)
	for _, l := range f.late {
		l.Step(next)
	}
	return true
}

// RunUntil steps until done says so, and fails the test when virtual time has
// moved on by limit or nothing more can happen.
func (f *Fabric) RunUntil(limit time.Duration, done func() bool) {
	f.tb.Helper()
	end := f.Net.Now().Add(limit)
	for {
		f.Settle()
		if done() {
			return
		}
		require.True(f.tb, f.Step(), "the fabric has come to rest")
		require.Less(f.tb, f.Net.Now(), end, "not done after %v of virtual time", limit)
	}
}

// Run steps for a time, or until nothing more can happen.
func (f *Fabric) Run(d time.Duration) {
	end := f.Net.Now().Add(d)
	for f.Net.Now() < end && f.Step() {
		continue
	}
}

// Over makes stepped NICs on any transports, with the system's clock. Net is nil:
// only Pair and what belongs to it can be used.
func Over(tb testing.TB, conns ...transport.Conn) *Fabric {
	tb.Helper()
	return OverAs(tb, nic.Config{}, conns...)
}

// OverAs is Over for NICs of one configuration.
func OverAs(tb testing.TB, cfg nic.Config, conns ...transport.Conn) *Fabric {
	tb.Helper()
	f := &Fabric{tb: tb}
	for _, c := range conns {
		cfg.Conn = c
		n, err := nic.Open(cfg)
		require.NoError(tb, err)
		f.NICs = append(f.NICs, n)
		tb.Cleanup(func() { _ = n.Close() })
	}
	return f
}
