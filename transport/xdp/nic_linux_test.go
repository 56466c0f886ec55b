package xdp_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/udp"
	"github.com/gohixl/hixl/transport/xdp"
	"github.com/gohixl/hixl/transport/xdp/veth"
)

// end is a NIC with a queue pair and two regions.
type end struct {
	nic      *hixl.NIC
	pd       *hixl.PD
	cq       *hixl.CQ
	qp       *hixl.QP
	src, dst *hixl.Region
	peer     *end
	rng      *rand.Rand
	counter  uint64 // what the peer's first word holds
}

const regionSize = 1 << 20

// patience is how long anything may take that must happen.
const patience = 2 * time.Minute

// patient is a connection that survives a link, or a whole machine, that stands
// still for seconds.
var patient = hixl.ConnectOptions{Timeout: 18}

func newEnd(t testing.TB, conn transport.Conn) *end {
	t.Helper()
	n, err := hixl.OpenNIC(hixl.Config{Transport: conn})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	e := &end{nic: n, rng: rand.New(rand.NewPCG(1, 2))}
	pd := n.AllocPD()
	e.cq, err = n.CreateCQ(1024)
	require.NoError(t, err)
	const access = hixl.LocalWrite | hixl.RemoteWrite | hixl.RemoteRead | hixl.RemoteAtomic
	for _, r := range []**hixl.Region{&e.src, &e.dst} {
		*r, err = pd.Alloc(regionSize, access)
		require.NoError(t, err)
	}
	e.pd = pd
	return e
}

// joined makes NICs on two carriers, with connected queue pairs.
func joined(t testing.TB, a, b transport.Conn) (*end, *end) {
	t.Helper()
	x, y := newEnd(t, a), newEnd(t, b)
	x.peer, y.peer = y, x
	connect(t, x, y, patient)
	return x, y
}

// connect gives both ends new queue pairs, in place of those they have.
func connect(t testing.TB, x, y *end, o hixl.ConnectOptions) {
	t.Helper()
	for _, e := range []*end{x, y} {
		if e.qp != nil {
			require.NoError(t, e.qp.Close())
		}
		_, _ = e.cq.Poll(make([]hixl.Completion, 64)) // what the old one has left
		var err error
		e.qp, err = e.nic.CreateQP(hixl.QPConfig{PD: e.pd, SendCQ: e.cq, RecvCQ: e.cq, SignalAll: true})
		require.NoError(t, err)
	}
	ax, ay := x.qp.Address(), y.qp.Address()
	require.NoError(t, x.qp.Connect(ay, o))
	require.NoError(t, y.qp.Connect(ax, o))
}

// transfer writes, reads, sends and counts, and verifies every byte; the error is
// that of an operation that failed.
func (e *end) transfer(size int) error {
	o := e.peer
	from, to := e.src.Bytes()[64:64+size], o.dst.Bytes()[64:64+size]
	e.fill(from)
	if err := e.do(hixl.SendWR{Op: hixl.OpWrite, SGE: []hixl.SGE{e.src.SGE(64, uint32(size))}, RemoteAddr: o.dst.Addr() + 64, RKey: o.dst.RKey()}); err != nil {
		return err
	}
	if err := same("WRITE", from, to); err != nil {
		return err
	}
	there := o.src.Bytes()[64 : 64+size]
	e.fill(there)
	here := e.dst.Bytes()[regionSize/2 : regionSize/2+size]
	if err := e.do(hixl.SendWR{Op: hixl.OpRead, SGE: []hixl.SGE{e.dst.SGE(regionSize/2, uint32(size))}, RemoteAddr: o.src.Addr() + 64, RKey: o.src.RKey()}); err != nil {
		return err
	}
	if err := same("READ", there, here); err != nil {
		return err
	}
	err := e.do(hixl.SendWR{Op: hixl.OpFetchAdd, SGE: []hixl.SGE{e.dst.SGE(0, 8)}, RemoteAddr: o.src.Addr(), RKey: o.src.RKey(), SwapAdd: 3})
	if err != nil {
		return err
	}
	if got := binary.NativeEndian.Uint64(e.dst.Bytes()); got != e.counter {
		return fmt.Errorf("fetch-and-add returned %d, want %d", got, e.counter)
	}
	e.counter += 3
	return nil
}

// fill makes what could not be there before.
func (e *end) fill(b []byte) {
	for i := 0; i+8 <= len(b); i += 8 {
		binary.NativeEndian.PutUint64(b[i:], e.rng.Uint64())
	}
}

func same(what string, a, b []byte) error {
	if string(a) != string(b) {
		return fmt.Errorf("%s of %d bytes brought others", what, len(a))
	}
	return nil
}

// do posts one work request and waits for it.
func (e *end) do(wr hixl.SendWR) error {
	if err := e.qp.PostSend(wr); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done := make([]hixl.Completion, 1)
	if _, err := e.cq.Wait(ctx, done); err != nil {
		return err
	}
	return done[0].Err()
}

var transferSizes = []int{8, 64, 1024, 1 << 10, 4096, 5000, 64 << 10, 400 << 10}

// allSizes transfers in one direction, then in the other.
func allSizes(t testing.TB, x, y *end) {
	t.Helper()
	for _, size := range transferSizes {
		require.NoError(t, x.transfer(size&^7))
		require.NoError(t, y.transfer(size&^7))
	}
}

// The whole stack on raw frames, and with sockets on the other side, whose trains
// nobody cuts before generic XDP sees them.
func TestNIC(t *testing.T) {
	for _, v := range variants {
		for _, other := range []string{"xdp", "udp"} {
			t.Run(fmt.Sprintf("%v/%d/%v/%s", v.mode, v.mtu, v.addrs[0], other), func(t *testing.T) {
				p := lab(t, veth.Config{MTU: v.mtu})
				var a, b transport.Conn
				a = openAt(t, p, 0, v.addrs[0], xdp.Config{Mode: v.mode})
				if other == "udp" {
					b = udpAt(t, p, 1, v.addrs[1], udp.Config{})
				} else {
					b = openAt(t, p, 1, v.addrs[1], xdp.Config{Mode: v.mode})
				}
				x, y := joined(t, a, b)
				allSizes(t, x, y)
				for _, e := range []*end{x, y} {
					s := e.nic.Stats()
					require.Zero(t, s.Drops[nic.DropICRC], "%v", s)
				}
				settled(t, a.(*xdp.Conn))
			})
		}
	}
}

// settled waits until all frames are where they belong.
func settled(t testing.TB, c *xdp.Conn) {
	t.Helper()
	require.Eventually(t, func() bool {
		a := c.Accounting()
		return a.TxInKernel == 0 && a.TxWaiting == 0
	}, patience, time.Millisecond, "%+v", c.Accounting())
	a := c.Accounting()
	require.Equal(t, a.RxTotal, a.RxFill+a.RxSpare+a.RxLent, "%+v", a)
	require.Equal(t, a.TxTotal, a.TxFree+a.TxLent, "%+v", a)
}

// Two queues, with a socket each.
func TestNICTwoQueues(t *testing.T) {
	p := lab(t, veth.Config{Queues: 2})
	a, b := openAt(t, p, 0, veth.Addrs4[0], xdp.Config{}), openAt(t, p, 1, veth.Addrs4[1], xdp.Config{})
	require.Equal(t, 2, a.Info().Queues)
	transportsBothQueues(t, a, b)
	x, y := joined(t, a, b)
	allSizes(t, x, y)
	settled(t, a)
}

func transportsBothQueues(t *testing.T, a, b *xdp.Conn) {
	t.Helper()
	require.NotEqual(t, a.Lane(0xc000), a.Lane(0xc001))
	for port := range uint16(2) {
		_, err := a.WriteBatch([]transport.Tx{{Data: []byte{byte(port)}, Dst: b.LocalAddr(), SrcPort: 0xc000 + port}})
		require.NoError(t, err)
		batch := transport.NewBatch(b, 1)
		_, err = b.ReadBatch(batch, true)
		require.NoError(t, err)
		require.Equal(t, []byte{byte(port)}, batch[0].Data)
		b.Release(batch)
	}
	require.Zero(t, b.Info().KernelRx, "both came by the rings")

	// Each queue is a part of its own.
	shards := b.Shards()
	require.Len(t, shards, 2)
	for port, s := range shards {
		_, err := a.WriteBatch([]transport.Tx{{Data: []byte{byte(port)}, Dst: b.LocalAddr(), SrcPort: 0xc000 + uint16(port)}})
		require.NoError(t, err)
		require.NoError(t, s.WaitRead())
		batch := transport.NewBatch(b, 1)
		n, err := shards[1-port].ReadBatch(batch, false)
		require.NoError(t, err)
		require.Zero(t, n)
		_, err = s.ReadBatch(batch, true)
		require.NoError(t, err)
		require.Equal(t, []byte{byte(port)}, batch[0].Data)
		s.Release(batch)
	}
}

// All frames are those of a VLAN, both ways, without a link of the kernel's for it.
func TestNICOnTaggedFrames(t *testing.T) {
	const vlan = 77
	for _, mode := range []xdp.Mode{xdp.ModeNative, xdp.ModeGeneric} {
		t.Run(mode.String(), func(t *testing.T) {
			p := lab(t, veth.Config{})
			a, b := openAt(t, p, 0, veth.Addrs4[0], xdp.Config{Mode: mode}), openAt(t, p, 1, veth.Addrs4[1], xdp.Config{Mode: mode})
			a.Tag(vlan)
			b.Tag(vlan)
			x, y := joined(t, a, b)
			allSizes(t, x, y)
			for _, c := range []*xdp.Conn{a, b} {
				tags, id := c.LastTag()
				require.Equal(t, 1, tags)
				require.EqualValues(t, vlan, id)
				require.Zero(t, c.Info().KernelRx)
			}
			settled(t, a)
		})
	}
}

// A VLAN on the link has the addresses: the frames carry its tag.
func TestNICOnVLAN(t *testing.T) {
	if p, err := veth.New(veth.Config{VLAN: 77}); errors.Is(err, unix.EOPNOTSUPP) {
		t.Skipf("needs a kernel with CONFIG_VLAN_8021Q: %v", err)
	} else if err == nil {
		require.NoError(t, p.Close())
	}
	p := lab(t, veth.Config{VLAN: 77})
	cfg := [2]xdp.Config{{Interface: veth.Links[0]}, {Interface: veth.Links[1]}}
	a, b := openAt(t, p, 0, veth.Addrs4[0], cfg[0]), openAt(t, p, 1, veth.Addrs4[1], cfg[1])
	x, y := joined(t, a, b)
	allSizes(t, x, y)
	require.Zero(t, a.Info().KernelRx)
	require.NoError(t, y.nic.Close())
	require.NoError(t, x.nic.Close())

	// The VLAN itself is a link too, and what the other side is does not matter.
	a, c := openAt(t, p, 0, veth.Addrs4[0], xdp.Config{}), udpAt(t, p, 1, veth.Addrs4[1], udp.Config{})
	require.Equal(t, veth.VLANs[0], a.Info().Interface)
	x, y = joined(t, a, c)
	allSizes(t, x, y)
}
