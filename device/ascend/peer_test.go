//go:build linux && (amd64 || arm64)

package ascend_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/ascend"
	"github.com/gohixl/hixl/device/staged"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/faults"
)

// copies is a library without any mapping: each byte goes by a copy.
var copies = map[string]string{"MAPPING": "absent", "VMM": "absent"}

// slowCopies and fastCopies are what a copy takes, in microseconds.
const slowCopies, fastCopies = "50000", "0"

// party is one of two contexts with a region of device memory.
type party struct {
	t      testing.TB
	dev    *ascend.Device
	mem    *staged.Memory
	c      *hixl.Context
	region *hixl.Region
	peer   *hixl.Peer         // the other
	remote *hixl.RemoteRegion // its region
}

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// parties makes two contexts on net's addresses 1 and 2, each with a device of its
// own, of which the first has dialed the second.
func parties(s *sim, net string, cfg hixl.PeerConfig, wrap func(transport.Conn) transport.Conn) (a, b *party) {
	t := s.t
	t.Helper()
	if cfg.Connect.Timeout == 0 {
		cfg.Connect.Timeout = 18 // 1 s: a machine may stand still
	}
	var ends [2]*party
	for i := range ends {
		p := &party{t: t, dev: s.open(func(c *ascend.Config) { c.Device = i })}
		p.mem = memory(t, pool(t, p.dev, staged.Config{}), sideSize)
		var err error
		p.c, err = hixl.Open(hixl.Config{Address: netip.MustParseAddr(fmt.Sprintf("%s.%d", net, i+1)), WrapTransport: wrap, Peers: cfg})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.c.Close()) })
		p.region, err = p.c.RegisterMemory(p.mem, hixl.MemoryOptions{Access: rights})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.region.Deregister(soon(t))) })
		ends[i] = p
	}
	a, b = ends[0], ends[1]
	l, err := b.c.Listen(soon(t), ":18515")
	require.NoError(t, err)
	a.peer, err = a.c.Dial(soon(t), l.Addr().String())
	require.NoError(t, err)
	b.peer, err = l.Accept(soon(t))
	require.NoError(t, err)
	a.remote, err = a.peer.Import(b.c.Describe(b.region))
	require.NoError(t, err)
	b.remote, err = b.peer.Import(a.c.Describe(a.region))
	require.NoError(t, err)
	return a, b
}

// put fills device memory from byte off on, through the driver.
func (p *party) put(off int, b []byte) {
	p.t.Helper()
	require.NoError(p.t, p.dev.Copy(device.Copy{Dir: device.In, Dev: p.mem.Block().Addr + device.Addr(off), Host: b}))
}

// content copies device memory back, through the driver.
func (p *party) content(off, n int) []byte {
	p.t.Helper()
	got := make([]byte, n)
	require.NoError(p.t, p.dev.Copy(device.Copy{Dir: device.Out, Dev: p.mem.Block().Addr + device.Addr(off), Host: got}))
	return got
}

func (p *party) desc(off, n int) hixl.Desc {
	return hixl.Desc{Local: p.region, LocalOff: uint64(off), Remote: p.remote, RemoteOff: uint64(off), Len: uint64(n)}
}

func noise(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 77))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// Nothing tells of bytes before they are in device memory, though copies take 50 ms:
// as soon as it is told they take no time, and the memory is copied back.
func TestNewsWaitForTheCopy(t *testing.T) {
	const off, n = 96, 200_000
	one := func(op hixl.TransferOp, notify bool) func(p *party) *hixl.Transfer {
		return func(p *party) *hixl.Transfer {
			x := &hixl.Transfer{Op: op, Descs: []hixl.Desc{p.desc(off, n)}, Imm: 7}
			if notify {
				x.Notify = &hixl.Notification{Name: "kv", Data: []byte("block 3")}
			}
			return x
		}
	}
	list := func(p *party) *hixl.Transfer {
		x := &hixl.Transfer{Op: hixl.Write, Notify: &hixl.Notification{Name: "kv"}}
		for at := off; at < off+n; at += 10_000 {
			x.Descs = append(x.Descs, p.desc(at, 10_000))
		}
		return x
	}
	ordered := func(p *party) *hixl.Transfer {
		x := one(hixl.Write, true)(p)
		x.Flags = hixl.Ordered
		return x
	}
	for i, c := range []struct {
		name     string
		transfer func(*party) *hixl.Transfer
		told     bool // the peer, by a notification
	}{
		{"write", one(hixl.Write, false), false},
		{"read", one(hixl.Read, false), false},
		{"write with notification", one(hixl.Write, true), true},
		{"ordered write with notification", ordered, true},
		{"list with notification", list, true},
		{"write with immediate", one(hixl.WriteImm, false), true},
		{"read with notification", one(hixl.Read, true), true},
	} {
		for k, from := range []string{"dialer", "acceptor"} {
			t.Run(c.name+" of the "+from, func(t *testing.T) {
				s := newSim(t, copies)
				x, y := parties(s, fmt.Sprintf("127.72.%d", 2*i+k), hixl.PeerConfig{QPs: 3}, nil)
				if k == 1 {
					x, y = y, x
				}
				transfer := c.transfer(x)
				src, dst := x, y
				if transfer.Op == hixl.Read {
					src, dst = y, x
				}
				want := noise(uint64(i), n)
				src.put(off, want)
				s.set("LATENCY", slowCopies)
				h, err := x.peer.Start(transfer)
				require.NoError(t, err)
				if c.told {
					got, err := y.peer.Notifications(soon(t))
					s.set("LATENCY", fastCopies)
					require.NoError(t, err)
					require.Equal(t, transfer.Op == hixl.WriteImm, got.IsImm)
				} else {
					require.NoError(t, h.Wait(soon(t)))
					s.set("LATENCY", fastCopies)
				}
				require.True(t, bytes.Equal(want, dst.content(off, n)), "the news came first")
				require.NoError(t, h.Wait(soon(t)))
			})
		}
	}
}

// A notification by itself comes after pushed writes, which nobody waits for.
func TestNotifyAfterPushes(t *testing.T) {
	s := newSim(t, copies)
	a, b := parties(s, "127.72.20", hixl.PeerConfig{}, nil)
	const piece, pieces = 300, 200 // gathered, and going to places apart
	want := noise(4, piece*pieces)
	a.put(0, want)
	s.set("LATENCY", slowCopies)
	for i := range pieces {
		d := a.desc(i*piece, piece)
		d.RemoteOff = uint64(2 * i * piece)
		require.NoError(t, a.peer.Push(d))
	}
	sent := make(chan error, 1)
	go func() { sent <- a.peer.Notify(soon(t), hixl.Notification{Name: "all"}) }()
	_, err := b.peer.Notifications(soon(t))
	s.set("LATENCY", fastCopies)
	require.NoError(t, err)
	got := b.content(0, 2*piece*pieces)
	for i := range pieces {
		require.True(t, bytes.Equal(want[i*piece:][:piece], got[2*i*piece:][:piece]), "piece %d was not there", i)
	}
	require.NoError(t, <-sent)
	require.NoError(t, a.peer.Flush(soon(t)))
}

// Over a network that loses, doubles and reorders, notifications tell of what is
// there, round for round, in both directions.
func TestNotificationsOverLoss(t *testing.T) {
	s := newSim(t, copies)
	seed := uint64(0)
	wrap := func(c transport.Conn) transport.Conn {
		seed++
		f, err := faults.Wrap(c, faults.Config{Seed: seed, Loss: 0.02, Duplicate: 0.02, Reorder: 0.02})
		require.NoError(t, err)
		return f
	}
	a, b := parties(s, "127.72.21", hixl.PeerConfig{QPs: 3}, wrap)
	s.set("LATENCY", "2000")
	const n = 40_000
	for round := range 12 {
		x, y := a, b
		if round%2 == 1 {
			x, y = b, a
		}
		want := noise(uint64(round), n)
		x.put(0, want)
		list := &hixl.Transfer{Op: hixl.Write, Notify: &hixl.Notification{Name: fmt.Sprint(round)}}
		for at := 0; at < n; at += 5000 {
			list.Descs = append(list.Descs, x.desc(at, 5000))
		}
		h, err := x.peer.Start(list)
		require.NoError(t, err)
		got, err := y.peer.Notifications(soon(t))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(round), got.Name)
		require.True(t, bytes.Equal(want, y.content(0, n)), "round %d", round)
		require.NoError(t, h.Wait(soon(t)))
	}
}

// After Cancel says that a transfer is fenced no byte of it lands in device memory,
// though copies are under way that take long: neither of a write at the peer nor of a
// read here, whether the fence comes of itself or by closing the connection.
func TestCancelWaitsForTheCopy(t *testing.T) {
	const off, n = 64, 1 << 20
	for i, c := range []struct {
		name  string
		op    hixl.TransferOp
		fence time.Duration
		after time.Duration
	}{
		{"write that completes", hixl.Write, 10 * time.Second, 0},
		{"write", hixl.Write, time.Millisecond, 0},
		{"write under way", hixl.Write, time.Millisecond, 20 * time.Millisecond},
		{"write nearly through", hixl.Write, time.Millisecond, 120 * time.Millisecond},
		{"write with immediate", hixl.WriteImm, time.Millisecond, 20 * time.Millisecond},
		{"read", hixl.Read, time.Millisecond, 0},
		{"read under way", hixl.Read, time.Millisecond, 70 * time.Millisecond},
		{"read whose copy is under way", hixl.Read, 10 * time.Second, 120 * time.Millisecond},
	} {
		for k, from := range []string{"dialer", "acceptor"} {
			t.Run(c.name+" of the "+from, func(t *testing.T) {
				s := newSim(t, copies)
				cfg := hixl.PeerConfig{FenceAfter: c.fence}
				x, y := parties(s, fmt.Sprintf("127.73.%d", 2*i+k), cfg, nil)
				if k == 1 {
					x, y = y, x
				}
				src, dst := x, y
				if c.op == hixl.Read {
					src, dst = y, x
				}
				want := noise(uint64(i), n)
				src.put(off, want)
				s.set("LATENCY", "100000")
				h, err := x.peer.Start(&hixl.Transfer{Op: c.op, Descs: []hixl.Desc{x.desc(off, n)}})
				require.NoError(t, err)
				time.Sleep(c.after)
				require.NoError(t, h.Cancel(soon(t)))
				require.True(t, h.Fenced())
				s.set("LATENCY", fastCopies) // of copies that begin now
				first := dst.content(off, n)
				time.Sleep(300 * time.Millisecond)
				require.True(t, bytes.Equal(first, dst.content(off, n)), "bytes landed after the fence")
				err = h.Err()
				if err == nil {
					require.True(t, bytes.Equal(want, first), "it is done")
					return
				}
				require.ErrorIs(t, err, hixl.ErrCanceled)
				var e *hixl.TransferError
				require.ErrorAs(t, err, &e)
				same := 0
				for j := range first {
					if first[j] == want[j] {
						same++
					}
				}
				require.LessOrEqual(t, e.Arrived, uint64(same), "no more is claimed than is there")
			})
		}
	}
}
