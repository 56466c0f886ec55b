//go:build linux && (amd64 || arm64)

package ascend_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/ascend"
	"github.com/gohixl/hixl/device/staged"
	hixlnic "github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/faults"
)

const (
	rights   = hixl.LocalWrite | hixl.RemoteWrite | hixl.RemoteRead | hixl.RemoteAtomic
	sideSize = 4 << 20
)

// side is one end of a connection whose memory is a device's.
type side struct {
	t      testing.TB
	dev    *ascend.Device
	pool   *staged.Pool
	mem    *staged.Memory
	nic    *hixl.NIC
	pd     *hixl.PD
	send   *hixl.CQ
	recv   *hixl.CQ
	qp     *hixl.QP
	region *hixl.Region

	want []byte // what device memory must hold in the end
	used int
}

// sideWindow is the most that connections between two sides may ask for.
const sideWindow = 4 << 20

// newSide opens device number n and a NIC on an address of its own.
func newSide(s *sim, n int, addr string, cfg staged.Config, wrap func(transport.Conn) transport.Conn) *side {
	t := s.t
	t.Helper()
	x := &side{t: t, want: make([]byte, sideSize)}
	x.dev = s.open(func(c *ascend.Config) { c.Device = n })
	x.pool = pool(t, x.dev, cfg)
	x.mem = memory(t, x.pool, sideSize)
	var err error
	x.nic, err = hixl.OpenNIC(hixl.Config{Address: netip.MustParseAddr(addr), WrapTransport: wrap, PathWindow: sideWindow})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.nic.Close()) })
	x.pd = x.nic.AllocPD()
	x.region, err = x.pd.RegisterMemory(x.mem, hixl.MemoryOptions{Access: rights})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.region.Deregister(context.Background())) })
	x.send, err = x.nic.CreateCQ(1024)
	require.NoError(t, err)
	x.recv, err = x.nic.CreateCQ(1024)
	require.NoError(t, err)
	x.qp, err = x.nic.CreateQP(hixl.QPConfig{PD: x.pd, SendCQ: x.send, RecvCQ: x.recv, SignalAll: true})
	require.NoError(t, err)
	return x
}

// join connects two sides.
func join(t testing.TB, a, b *side) {
	t.Helper()
	connect(t, a, b, hixl.ConnectOptions{Timeout: 18})
}

func connect(t testing.TB, a, b *side, o hixl.ConnectOptions) {
	t.Helper()
	require.NoError(t, a.qp.Connect(b.qp.Address(), o))
	require.NoError(t, b.qp.Connect(a.qp.Address(), o))
}

// completion takes one.
func (x *side) completion(q *hixl.CQ) hixl.Completion {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var c [1]hixl.Completion
	_, err := q.Wait(ctx, c[:])
	require.NoError(x.t, err)
	return c[0]
}

// finish takes n completions, all good.
func (x *side) finish(n int) {
	x.t.Helper()
	for range n {
		c := x.completion(x.send)
		require.NoError(x.t, c.Err())
	}
}

// take returns n bytes that nobody else uses, aligned, with a gap behind them.
func (x *side) take(n int) int {
	off := (x.used + 63) &^ 63
	x.used = off + n + 1
	require.LessOrEqual(x.t, x.used, sideSize)
	return off
}

// fill puts random bytes into device memory, through the driver.
func (x *side) fill(rng *rand.Rand) {
	for i := 0; i < sideSize; i += 8 {
		binary.NativeEndian.PutUint64(x.want[i:], rng.Uint64())
	}
	require.NoError(x.t, x.dev.Copy(device.Copy{Dir: device.In, Dev: x.mem.Block().Addr, Host: x.want}))
}

// content copies device memory back, through the driver.
func (x *side) content(off, n int) []byte {
	x.t.Helper()
	got := make([]byte, n)
	require.NoError(x.t, x.dev.Copy(device.Copy{Dir: device.Out, Dev: x.mem.Block().Addr + device.Addr(off), Host: got}))
	return got
}

// verify compares all of device memory with what it must hold.
func (x *side) verify() {
	x.t.Helper()
	got := x.content(0, sideSize)
	for i := range got {
		if got[i] != x.want[i] {
			x.t.Fatalf("byte %d of device memory is %#x, want %#x", i, got[i], x.want[i])
		}
	}
}

func (x *side) sge(off, n int) hixl.SGE { return x.region.SGE(uint64(off), uint32(n)) }

// burst is work requests and what the peer must receive of them.
type burst struct {
	from, to *side
	wrs      []hixl.SendWR
	recvs    []hixl.RecvWR
	imms     []uint32
}

func (b *burst) remote(off int) (uint64, uint32) {
	return b.to.region.Addr() + uint64(off), b.to.region.RKey()
}

func (b *burst) add(wr hixl.SendWR) { b.wrs = append(b.wrs, wr) }

// write moves n bytes, from two places where there are enough.
func (b *burst) write(n int, imm uint32) {
	src, dst := b.from.take(n), b.to.take(n)
	wr := hixl.SendWR{Op: hixl.OpWrite, SGE: []hixl.SGE{b.from.sge(src, n)}}
	if n > 10 {
		wr.SGE = []hixl.SGE{b.from.sge(src, 7), b.from.sge(src+7, n-7)}
	}
	wr.RemoteAddr, wr.RKey = b.remote(dst)
	if imm != 0 {
		wr.Op, wr.Imm = hixl.OpWriteImm, imm
		b.recvs, b.imms = append(b.recvs, hixl.RecvWR{}), append(b.imms, imm)
	}
	copy(b.to.want[dst:], b.from.want[src:src+n])
	b.add(wr)
}

func (b *burst) sendTo(n int, imm uint32) {
	src, dst := b.from.take(n), b.to.take(n)
	wr := hixl.SendWR{Op: hixl.OpSend, SGE: []hixl.SGE{b.from.sge(src, n)}}
	if imm != 0 {
		wr.Op, wr.Imm = hixl.OpSendImm, imm
	}
	b.recvs, b.imms = append(b.recvs, hixl.RecvWR{SGE: []hixl.SGE{b.to.sge(dst, n)}}), append(b.imms, imm)
	copy(b.to.want[dst:], b.from.want[src:src+n])
	b.add(wr)
}

func (b *burst) read(n int) {
	src, dst := b.to.take(n), b.from.take(n)
	wr := hixl.SendWR{Op: hixl.OpRead, SGE: []hixl.SGE{b.from.sge(dst, n)}}
	wr.RemoteAddr, wr.RKey = b.remote(src)
	copy(b.from.want[dst:], b.to.want[src:src+n])
	b.add(wr)
}

// atomics makes a compare-and-swap that matches, one that does not, an add and a
// store, on words of their own.
func (b *burst) atomics(rng *rand.Rand) {
	for i := range 4 {
		at, res := b.to.take(8), b.from.take(8)
		old := binary.NativeEndian.Uint64(b.to.want[at:])
		op := device.AtomicOp{Kind: device.CompareSwap, Compare: old, Operand: rng.Uint64()}
		wr := hixl.SendWR{Op: hixl.OpCmpSwap, SGE: []hixl.SGE{b.from.sge(res, 8)}}
		switch i {
		case 1:
			op.Compare++
		case 2:
			op.Kind, wr.Op = device.FetchAdd, hixl.OpFetchAdd
		case 3:
			op.Kind, wr.Op, wr.SGE = device.Store, hixl.OpAtomicWrite, nil
			wr.Inline = binary.NativeEndian.AppendUint64(nil, op.Operand)
		}
		if i < 3 {
			wr.SwapAdd, wr.Compare = op.Operand, op.Compare
			binary.NativeEndian.PutUint64(b.from.want[res:], old)
		}
		if value, store := op.Apply(old); store {
			binary.NativeEndian.PutUint64(b.to.want[at:], value)
		}
		wr.RemoteAddr, wr.RKey = b.remote(at)
		b.add(wr)
	}
}

// run posts everything in lists and waits for both sides.
func (b *burst) run() {
	t := b.from.t
	t.Helper()
	for _, r := range b.recvs {
		require.NoError(t, b.to.qp.PostRecv(r))
	}
	for at := 0; at < len(b.wrs); at += 20 {
		list := b.wrs[at:min(at+20, len(b.wrs))]
		require.NoError(t, b.from.qp.PostSend(list...))
		b.from.finish(len(list))
	}
	for _, imm := range b.imms {
		c := b.to.completion(b.to.recv)
		require.NoError(t, c.Err())
		require.Equal(t, imm, c.Imm)
	}
}

// Every operation between regions of two devices, in both directions, over a network
// that loses, doubles and reorders, with and without a mapping: what device memory
// holds in the end is copied back by the driver.
func TestOperationsOnDeviceRegions(t *testing.T) {
	for i, shape := range shapes[:5] {
		t.Run(shape.name, func(t *testing.T) {
			s := newSim(t, shape.env, shape.without...)
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			var lossy []*faults.Conn
			wrap := func(c transport.Conn) transport.Conn {
				f, err := faults.Wrap(c, faults.Config{Seed: uint64(i + len(lossy)), Loss: 0.02, Duplicate: 0.02, Reorder: 0.02})
				require.NoError(t, err)
				lossy = append(lossy, f)
				return f
			}
			cfg := staged.Config{Chunk: 32 << 10}
			a := newSide(s, 0, fmt.Sprintf("127.71.%d.1", i), cfg, wrap)
			b := newSide(s, 1, fmt.Sprintf("127.71.%d.2", i), cfg, wrap)
			join(t, a, b)
			a.fill(rng)
			b.fill(rng)
			for _, ends := range [][2]*side{{a, b}, {b, a}} {
				x := &burst{from: ends[0], to: ends[1]}
				for _, n := range []int{1, 63, 64, 4096, 4097, 70_001, 300_000} {
					x.write(n, 0)
					x.write(n, uint32(n))
					x.sendTo(n, 0)
					x.sendTo(n, uint32(n+1))
					x.read(n)
					x.atomics(rng)
				}
				x.run()
			}
			a.verify()
			b.verify()
			require.Positive(t, lossy[0].Counts().Lost+lossy[1].Counts().Lost)
			if st := a.pool.Stats(); !a.mem.Mapped() {
				require.Zero(t, st.MappedWrites+st.MappedAtomics)
				require.Positive(t, st.Atomics)
			} else {
				require.Positive(t, st.MappedWrites)
				require.Positive(t, st.MappedAtomics)
			}
		})
	}
}

// Adds of many queue pairs on one word of device memory are all counted, each seeing
// another value.
func TestAtomicsOnOneWord(t *testing.T) {
	for name, env := range map[string]map[string]string{"mapping": nil, "copies": {"MAPPING": "absent", "VMM": "absent"}} {
		t.Run(name, func(t *testing.T) {
			s := newSim(t, env)
			a := newSide(s, 0, "127.71.20.1", staged.Config{}, nil)
			b := newSide(s, 1, "127.71.20.2", staged.Config{}, nil)
			join(t, a, b)
			const adds = 200
			var list []hixl.SendWR
			for i := range adds {
				list = append(list, hixl.SendWR{
					Op: hixl.OpFetchAdd, SwapAdd: 3, RemoteAddr: b.region.Addr() + 8, RKey: b.region.RKey(),
					SGE: []hixl.SGE{a.sge(8*i, 8)},
				})
			}
			for at := 0; at < adds; at += 50 {
				require.NoError(t, a.qp.PostSend(list[at:at+50]...))
				a.finish(50)
			}
			seen := a.content(0, 8*adds)
			for i := range adds {
				require.EqualValues(t, 3*i, binary.NativeEndian.Uint64(seen[8*i:]))
			}
			require.EqualValues(t, 3*adds, binary.NativeEndian.Uint64(b.content(8, 8)))
		})
	}
}

// No completion, on either side, is seen before the bytes are in device memory:
// copies take 50 ms, and as soon as a completion is there they take no time and the
// content is copied back.
func TestCompletionsWaitForTheCopy(t *testing.T) {
	const n = 30_000
	for i, c := range []struct {
		name string
		wr   hixl.SendWR
		at   string // whose completion
	}{
		{"write", hixl.SendWR{Op: hixl.OpWrite}, "requester"},
		{"write with immediate", hixl.SendWR{Op: hixl.OpWriteImm, Imm: 5}, "receiver"},
		{"send", hixl.SendWR{Op: hixl.OpSend}, "receiver"},
		{"send with immediate", hixl.SendWR{Op: hixl.OpSendImm, Imm: 6}, "receiver"},
		{"read", hixl.SendWR{Op: hixl.OpRead}, "reader"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSim(t, map[string]string{"MAPPING": "absent", "VMM": "absent"})
			a := newSide(s, 0, fmt.Sprintf("127.71.30.%d", 2*i+1), staged.Config{}, nil)
			b := newSide(s, 1, fmt.Sprintf("127.71.30.%d", 2*i+2), staged.Config{}, nil)
			join(t, a, b)
			rng := rand.New(rand.NewPCG(3, uint64(i)))
			a.fill(rng)
			b.fill(rng)
			s.set("LATENCY", "50000")
			wr := c.wr
			wr.SGE, wr.RemoteAddr, wr.RKey = []hixl.SGE{a.sge(64, n)}, b.region.Addr()+128, b.region.RKey()
			if c.at == "receiver" {
				require.NoError(t, b.qp.PostRecv(hixl.RecvWR{SGE: []hixl.SGE{b.sge(128, n)}}))
			}
			require.NoError(t, a.qp.PostSend(wr))
			to, off, want, q := b, 128, a.want[64:64+n], a.send
			switch c.at {
			case "receiver":
				q = b.recv
			case "reader":
				to, off, want = a, 64, b.want[128:128+n]
			}
			end := a.completion(q)
			s.set("LATENCY", "0")
			got := to.content(off, n)
			require.NoError(t, end.Err())
			require.True(t, bytes.Equal(want, got), "the completion came first")
			if c.at == "receiver" {
				a.finish(1)
			}
		})
	}
}

// A device that is lost ends its connections with an error; others go on.
func TestLostDeviceUnderConnections(t *testing.T) {
	s := newSim(t, map[string]string{"MAPPING": "absent", "VMM": "absent", "DEVICES": "3"})
	a := newSide(s, 0, "127.71.40.1", staged.Config{}, nil)
	b := newSide(s, 1, "127.71.40.2", staged.Config{}, nil)
	c := newSide(s, 2, "127.71.40.3", staged.Config{}, nil)
	other, err := a.nic.CreateQP(hixl.QPConfig{PD: a.pd, SendCQ: a.recv, RecvCQ: a.recv, SignalAll: true})
	require.NoError(t, err)
	join(t, a, b)
	require.NoError(t, other.Connect(c.qp.Address(), hixl.ConnectOptions{Timeout: 18}))
	require.NoError(t, c.qp.Connect(other.Address(), hixl.ConnectOptions{Timeout: 18}))
	s.set("LOSE", "1")
	write := func(to *side) hixl.SendWR {
		return hixl.SendWR{Op: hixl.OpWrite, SGE: []hixl.SGE{a.sge(0, 5000)}, RemoteAddr: to.region.Addr(), RKey: to.region.RKey()}
	}
	require.NoError(t, a.qp.PostSend(write(b)))
	failed := a.completion(a.send)
	require.ErrorIs(t, failed.Err(), cq.ErrRemoteOperation, "the peer's memory has failed")
	require.NoError(t, other.PostSend(write(c)))
	end := a.completion(a.recv)
	require.NoError(t, end.Err())
}

// A copy engine that is slower than the wire slows its peer down; staging stays
// within its bound, but for one packet of the queue pair, and nothing is lost in
// the end.
func TestSlowEngine(t *testing.T) {
	s := newSim(t, map[string]string{"MAPPING": "absent", "VMM": "absent"})
	cfg := staged.Config{Chunk: 16 << 10, Buffers: 2}
	a := newSide(s, 0, "127.71.45.1", staged.Config{}, nil)
	b := newSide(s, 1, "127.71.45.2", cfg, nil)
	join(t, a, b)
	a.fill(rand.New(rand.NewPCG(5, 5)))
	b.fill(rand.New(rand.NewPCG(6, 6)))
	s.set("BANDWIDTH", "20000000")
	const n = 1 << 20
	require.NoError(t, a.qp.PostSend(hixl.SendWR{
		Op: hixl.OpWrite, SGE: []hixl.SGE{a.sge(0, n)}, RemoteAddr: b.region.Addr(), RKey: b.region.RKey(),
	}))
	a.finish(1)
	s.set("BANDWIDTH", "0")
	copy(b.want, a.want[:n])
	b.verify()
	st := b.pool.Stats()
	require.LessOrEqual(t, st.Staging+st.SpilledMax, cfg.Bound()+b.nic.MTU(), "one packet above it")
	require.Zero(t, st.Spilled)
	stats := b.nic.Stats()
	require.Positive(t, stats.Drops[hixlnic.DropMemory])
}
