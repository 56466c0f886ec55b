package nic_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport/sim"
)

// fabrics are the networks on which every operation must work.
var fabrics = map[string]nictest.Config{
	"perfect":     {Hosts: 2, Net: sim.Config{Link: sim.Link{Delay: time.Microsecond}}},
	"trains":      {Hosts: 2, Net: sim.Config{Link: sim.Link{Delay: time.Microsecond}, Trains: 15}},
	"hidden":      {Hosts: 2, Net: sim.Config{HideHeaders: true, Trains: 15}},
	"IPv6":        {Hosts: 2, IPv6: true, Net: sim.Config{HideHeaders: true, Trains: 4}},
	"lossy":       {Hosts: 2, Net: sim.Config{Seed: 1, Trains: 8, Link: sim.Link{Delay: 20 * time.Microsecond, Loss: 0.05, Reorder: 0.05, Duplicate: 0.05, Corrupt: 0.05}}},
	"small MTU":   {Hosts: 2, Net: sim.Config{Link: sim.Link{MTU: 400}}},
	"thin, queue": {Hosts: 2, Net: sim.Config{Link: sim.Link{Delay: time.Millisecond, Rate: 1e9, QueueBytes: 1 << 17, MarkBytes: 1 << 16}}},
}

func eachFabric(t *testing.T, f func(t *testing.T, f *nictest.Fabric)) {
	for name, cfg := range fabrics {
		t.Run(name, func(t *testing.T) { f(t, nictest.New(t, cfg)) })
	}
}

func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// sizes covers 0..9, around the MTU, and several windows.
func sizes(mtu int) []int {
	s := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, mtu - 1, mtu, mtu + 1, 2 * mtu, 5*mtu + 3, 3 << 20}
	return s
}

// one waits for exactly one completion and returns it.
func one(t *testing.T, f *nictest.Fabric, e *nictest.End, q *cq.Queue) cq.Completion {
	t.Helper()
	f.RunUntil(time.Minute, func() bool { return q.Len() > 0 })
	got := e.Take(q)
	require.Len(t, got, 1)
	return got[0]
}

func success(t *testing.T, f *nictest.Fabric, e *nictest.End, q *cq.Queue) cq.Completion {
	t.Helper()
	c := one(t, f, e, q)
	require.NoError(t, c.Err())
	return c
}

func TestWriteAndRead(t *testing.T) {
	eachFabric(t, func(t *testing.T, f *nictest.Fabric) {
		a, b := f.Pair(0, 1, nictest.PairConfig{})
		const size = 8 << 20
		local, remote := a.Region(size), b.Region(size)
		for i, n := range sizes(a.NIC.MTU().Bytes()) {
			want := random(uint64(n), n)
			copy(local.Bytes(), want)
			a.Post(qp.SendWR{
				ID: uint64(i), Op: wr.OpWrite, Flags: wr.Signaled, SGE: []mr.SGE{local.SGE(0, uint32(n))},
				RemoteAddr: remote.Addr() + 64, RKey: remote.RKey(),
			})
			c := success(t, f, a, a.Send)
			require.Equal(t, uint64(i), c.WRID)
			require.Equal(t, cq.OpWrite, c.Opcode)
			require.True(t, bytes.Equal(want, remote.Bytes()[64:64+n]), "written %d bytes", n)

			clear(local.Bytes())
			a.Post(qp.SendWR{
				ID: 100, Op: wr.OpRead, Flags: wr.Signaled,
				SGE:        []mr.SGE{local.SGE(7, uint32(n/2)), local.SGE(size/2, uint32(n-n/2))},
				RemoteAddr: remote.Addr() + 64, RKey: remote.RKey(),
			})
			success(t, f, a, a.Send)
			got := append(bytes.Clone(local.Bytes()[7:7+n/2]), local.Bytes()[size/2:size/2+n-n/2]...)
			require.True(t, bytes.Equal(want, got), "read %d bytes", n)
		}
	})
}

func TestSend(t *testing.T) {
	eachFabric(t, func(t *testing.T, f *nictest.Fabric) {
		a, b := f.Pair(0, 1, nictest.PairConfig{})
		const size = 8 << 20
		local, remote := a.Region(size), b.Region(size)
		for i, n := range sizes(a.NIC.MTU().Bytes()) {
			want := random(uint64(n), n)
			copy(local.Bytes(), want)
			head := uint32(n / 3)
			b.Receive(qp.RecvWR{ID: uint64(1000 + i), SGE: []mr.SGE{remote.SGE(1, head), remote.SGE(size/2, uint32(n)-head+5)}})
			req := qp.SendWR{ID: uint64(i), Op: wr.OpSend, Flags: wr.Signaled | wr.Solicited, SGE: []mr.SGE{local.SGE(0, uint32(n))}}
			if i%2 == 1 {
				req.Op, req.Imm = wr.OpSendImm, uint32(i)
			}
			a.Post(req)
			success(t, f, a, a.Send)
			c := success(t, f, b, b.Recv)
			require.Equal(t, uint64(1000+i), c.WRID)
			require.Equal(t, uint32(n), c.ByteLen)
			require.True(t, c.Flags.Has(cq.Solicited))
			require.Equal(t, i%2 == 1, c.Flags.Has(cq.WithImm))
			if i%2 == 1 {
				require.Equal(t, uint32(i), c.Imm)
			}
			got := append(bytes.Clone(remote.Bytes()[1:1+head]), remote.Bytes()[size/2:size/2+n-int(head)]...)
			require.True(t, bytes.Equal(want, got), "sent %d bytes", n)
		}
	})
}

func TestWriteImm(t *testing.T) {
	eachFabric(t, func(t *testing.T, f *nictest.Fabric) {
		a, b := f.Pair(0, 1, nictest.PairConfig{})
		local, remote := a.Region(1<<16), b.Region(1<<16)
		copy(local.Bytes(), random(1, 1<<16))
		for _, n := range []int{0, 5, 1 << 16} {
			b.Receive(qp.RecvWR{ID: 9})
			a.Post(qp.SendWR{
				Op: wr.OpWriteImm, Flags: wr.Signaled, Imm: 0xcafe0001, SGE: []mr.SGE{local.SGE(0, uint32(n))},
				RemoteAddr: remote.Addr(), RKey: remote.RKey(),
			})
			success(t, f, a, a.Send)
			c := success(t, f, b, b.Recv)
			require.Equal(t, cq.OpRecvWriteImm, c.Opcode)
			require.Equal(t, uint32(n), c.ByteLen)
			require.Equal(t, uint32(0xcafe0001), c.Imm)
			require.True(t, bytes.Equal(local.Bytes()[:n], remote.Bytes()[:n]))
		}
	})
}

func TestAtomics(t *testing.T) {
	eachFabric(t, func(t *testing.T, f *nictest.Fabric) {
		a, b := f.Pair(0, 1, nictest.PairConfig{})
		local, remote := a.Region(64), b.Region(64)
		word := func(r *mr.Region) uint64 { return binary.NativeEndian.Uint64(r.Bytes()[8:]) }
		do := func(req qp.SendWR) uint64 {
			req.Flags, req.RemoteAddr, req.RKey = wr.Signaled, remote.Addr()+8, remote.RKey()
			if req.Op != wr.OpAtomicWrite {
				req.SGE = []mr.SGE{local.SGE(8, 8)}
			}
			a.Post(req)
			require.Equal(t, req.Op.Completion(), success(t, f, a, a.Send).Opcode)
			return word(local)
		}
		for i := range uint64(20) {
			require.Equal(t, 3*i, do(qp.SendWR{Op: wr.OpFetchAdd, SwapAdd: 3}))
		}
		require.Equal(t, uint64(60), do(qp.SendWR{Op: wr.OpCmpSwap, Compare: 1, SwapAdd: 2}))
		require.Equal(t, uint64(60), word(remote))
		require.Equal(t, uint64(60), do(qp.SendWR{Op: wr.OpCmpSwap, Compare: 60, SwapAdd: 1 << 63}))
		require.Equal(t, uint64(1<<63), word(remote))
		w := qp.Word(77)
		do(qp.SendWR{Op: wr.OpAtomicWrite, Inline: w[:]})
		require.Equal(t, uint64(77), word(remote))
	})
}

// An inline send is copied when it is posted: the buffer may change at once, and
// a retransmission still carries what was posted.
func TestInline(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 2, Net: sim.Config{Link: sim.Link{Loss: 0.3}, Seed: 3}})
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	remote := b.Region(256)
	for n := range 257 {
		data := bytes.Repeat([]byte{byte(n)}, n)
		a.Post(qp.SendWR{
			Op: wr.OpWrite, Flags: wr.Signaled, Inline: data, RemoteAddr: remote.Addr(), RKey: remote.RKey(),
		})
		clear(data)
		success(t, f, a, a.Send)
		require.Equal(t, bytes.Repeat([]byte{byte(n)}, n), remote.Bytes()[:n])
	}
}

// Everything also works on memory that finishes late and out of order, at either
// end or both.
func TestLateMemory(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := nictest.New(t, nictest.Config{
				Hosts: 2, Net: sim.Config{Seed: seed, Trains: 8, Link: sim.Link{Delay: 5 * time.Microsecond, Loss: 0.02 * float64(seed%3)}},
			})
			a, b := f.Pair(0, 1, nictest.PairConfig{})
			const size = 1 << 20
			lateA := f.Late(devicetest.LateConfig{Size: size, Seed: seed, MaxDelay: 200 * time.Microsecond, Prompt: 0.2})
			lateB := f.Late(devicetest.LateConfig{Size: size, Seed: seed + 99, MaxDelay: 50 * time.Microsecond, NoAtomic: seed%2 == 0})
			local, remote := a.Register(lateA), b.Register(lateB)
			host := a.Region(size)
			want := random(seed, size)
			copy(host.Bytes(), want)

			write := func(from *mr.Region, n int) {
				a.Post(qp.SendWR{
					Op: wr.OpWrite, Flags: wr.Signaled, SGE: []mr.SGE{from.SGE(0, uint32(n))}, RemoteAddr: remote.Addr(), RKey: remote.RKey(),
				})
			}
			read := func(to *mr.Region, n int) {
				a.Post(qp.SendWR{
					Op: wr.OpRead, Flags: wr.Signaled, SGE: []mr.SGE{to.SGE(0, uint32(n))}, RemoteAddr: remote.Addr(), RKey: remote.RKey(),
				})
			}
			write(host, size)
			success(t, f, a, a.Send)
			require.True(t, bytes.Equal(want, lateB.Snapshot()), "complete means that every byte is there")
			read(local, size)
			success(t, f, a, a.Send)
			require.True(t, bytes.Equal(want, lateA.Snapshot()))

			// From late to late, then a READ of what was written, not waiting.
			clear(host.Bytes())
			copy(want[:1000], random(seed+7, 1000))
			require.NoError(t, writeAll(f, lateA, want[:1000]))
			write(local, 1000)
			read(host, 1000)
			f.RunUntil(time.Minute, func() bool { return a.Send.Len() == 2 })
			for _, c := range a.Take(a.Send) {
				require.NoError(t, c.Err())
			}
			require.Equal(t, want[:1000], host.Bytes()[:1000], "a READ sees the WRITE before it")

			// SEND into late memory, atomics on it.
			b.Receive(qp.RecvWR{SGE: []mr.SGE{remote.SGE(4096, 3000)}})
			a.Post(qp.SendWR{Op: wr.OpSend, Flags: wr.Signaled, SGE: []mr.SGE{local.SGE(0, 1000), host.SGE(0, 1000)}})
			success(t, f, b, b.Recv)
			require.Equal(t, append(bytes.Clone(want[:1000]), want[:1000]...), lateB.Snapshot()[4096:6096])
			success(t, f, a, a.Send)

			before := binary.NativeEndian.Uint64(lateB.Snapshot()[8192:])
			for range 5 {
				a.Post(qp.SendWR{
					Op: wr.OpFetchAdd, SwapAdd: 1, SGE: []mr.SGE{host.SGE(64, 8)}, RemoteAddr: remote.Addr() + 8192, RKey: remote.RKey(),
					Flags: wr.Signaled,
				})
			}
			f.RunUntil(time.Minute, func() bool { return a.Send.Len() == 5 })
			a.Take(a.Send)
			require.Equal(t, before+5, binary.NativeEndian.Uint64(lateB.Snapshot()[8192:]))
		})
	}
}

// writeAll fills a late memory from its start.
func writeAll(f *nictest.Fabric, l *devicetest.Late, b []byte) error {
	w := make(doneChan, 1)
	done, err := l.WriteV(vec(0, b), 0, w)
	for !done {
		f.Step()
		select {
		case err = <-w:
			done = true
		default:
		}
	}
	return err
}
