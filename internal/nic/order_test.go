package nic_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/sim"
)

func sges(r *mr.Region, n int) []mr.SGE { return []mr.SGE{r.SGE(0, uint32(n))} }

// spy looks at what a NIC writes.
type spy struct {
	transport.Conn
	on func(p *roce.Packet)
}

func (s *spy) WriteBatch(b []transport.Tx) (int, error) {
	for i := range b {
		for k := range b[i].Packets() {
			var p roce.Packet
			if p.Decode(b[i].Packet(k)) == nil && s.on != nil {
				s.on(&p)
			}
		}
	}
	return s.Conn.WriteBatch(b)
}

// A receive completes only after its ACK was written (design: ACKs leave first).
func TestACKLeavesBeforeReceiveCompletes(t *testing.T) {
	var s *spy
	f := nictest.New(t, nictest.Config{Hosts: 2, Tune: func(host int, c *nic.Config) {
		if host == 1 {
			s = &spy{Conn: c.Conn}
			c.Conn = s
		}
	}})
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	const n = 10
	room := b.Region(8)
	for range n {
		b.Receive(qp.RecvWR{SGE: sges(room, 8)})
	}
	acked := 0
	s.on = func(p *roce.Packet) {
		if p.Opcode == roce.OpAcknowledge {
			require.LessOrEqual(t, b.Recv.Len(), acked, "a completion was published before its ACK")
			acked = int(p.PSN) + 1
		}
	}
	for i := range n {
		a.Post(qp.SendWR{Op: wr.OpSend, Inline: []byte("x")})
		if i%3 == 0 {
			f.Run(time.Millisecond)
		}
	}
	f.RunUntil(time.Second, func() bool { return b.Recv.Len() == n })
	require.Equal(t, n, acked)
}

// The same when the ACK waits behind READ responses out of late memory.
func TestACKLeavesBeforeReceiveCompletesLate(t *testing.T) {
	var s *spy
	f := nictest.New(t, nictest.Config{Hosts: 2, Tune: func(host int, c *nic.Config) {
		if host == 1 {
			s = &spy{Conn: c.Conn}
			c.Conn = s
		}
	}})
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	late := f.Late(devicetest.LateConfig{Size: 1 << 20, MaxDelay: time.Millisecond})
	local, remote := a.Region(1<<20), b.Register(late)
	b.Receive(qp.RecvWR{})
	var last roce.PSN
	s.on = func(p *roce.Packet) {
		require.Equal(t, 0, b.Recv.Len())
		require.GreaterOrEqual(t, p.PSN, last, "responses leave in order")
		last = p.PSN
	}
	a.Post(
		qp.SendWR{Op: wr.OpRead, Flags: wr.Signaled, SGE: sges(local, 1<<20), RemoteAddr: remote.Addr(), RKey: remote.RKey()},
		qp.SendWR{Op: wr.OpSend, Flags: wr.Signaled},
	)
	f.RunUntil(time.Minute, func() bool { return b.Recv.Len() == 1 })
	f.RunUntil(time.Minute, func() bool { return a.Send.Len() == 2 })
}

// A READ reads before a WRITE behind it writes, though the spec would allow the
// responder to be lazy without a fence (§3.8): on host memory and on late.
func TestReadBeforeWrite(t *testing.T) {
	for _, late := range []bool{false, true} {
		f := nictest.New(t, nictest.Config{Hosts: 2, Net: sim.Config{Trains: 8}})
		a, b := f.Pair(0, 1, nictest.PairConfig{})
		const size = 1 << 20
		local := a.Region(2 * size)
		var remote *mr.Region
		if late {
			remote = b.Register(f.Late(devicetest.LateConfig{Size: size, MaxDelay: 100 * time.Microsecond}))
		} else {
			remote = b.Region(size)
		}
		for i := range local.Bytes()[:size] {
			local.Bytes()[i] = 0xAA
		}
		// In one list, so that all packets arrive together.
		a.Post(
			qp.SendWR{Op: wr.OpRead, Flags: wr.Signaled, SGE: []mr.SGE{local.SGE(size, size)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()},
			qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, SGE: []mr.SGE{local.SGE(0, 64<<10)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()},
		)
		f.RunUntil(time.Minute, func() bool { return a.Send.Len() == 2 })
		for _, c := range a.Take(a.Send) {
			require.NoError(t, c.Err())
		}
		require.True(t, bytes.Equal(make([]byte, size), local.Bytes()[size:]), "late %v: the READ saw the WRITE behind it", late)
	}
}

// Retransmissions and everything else go through the same FIFO: with late source
// memory no packet overtakes another of its queue pair.
func TestHeldPacketsKeepTheirOrder(t *testing.T) {
	var s *spy
	f := nictest.New(t, nictest.Config{Hosts: 2, Tune: func(host int, c *nic.Config) {
		if host == 0 {
			s = &spy{Conn: c.Conn}
			c.Conn = s
		}
	}})
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	late := a.Register(f.Late(devicetest.LateConfig{Size: 1 << 20, MaxDelay: time.Millisecond, Prompt: 0.5}))
	direct, remote := a.Region(4096), b.Region(1<<20)
	next := roce.PSN(0)
	s.on = func(p *roce.Packet) {
		if p.Opcode.IsRequest() {
			require.Equal(t, next, p.PSN)
			next = next.Add(1)
		}
	}
	for range 20 {
		a.Post(
			qp.SendWR{Op: wr.OpWrite, SGE: sges(late, 20000), RemoteAddr: remote.Addr(), RKey: remote.RKey()},
			qp.SendWR{Op: wr.OpWrite, SGE: sges(direct, 100), RemoteAddr: remote.Addr(), RKey: remote.RKey()},
			qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled, Inline: []byte("inline"), RemoteAddr: remote.Addr(), RKey: remote.RKey()},
		)
	}
	f.RunUntil(time.Minute, func() bool { return a.Send.Len() == 20 })
}

// A queue pair that is reset while late memory still writes or reads for it is
// new at once; what is under way no longer counts.
func TestResetDuringLateWork(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 2})
	cfg := nictest.PairConfig{Access: qp.RemoteAccess}
	a, b := f.Pair(0, 1, cfg)
	late := f.Late(devicetest.LateConfig{Size: 1 << 18, MaxDelay: 50 * time.Millisecond})
	lateA := f.Late(devicetest.LateConfig{Size: 1 << 18, MaxDelay: 50 * time.Millisecond})
	source, remote := a.Register(lateA), b.Register(late)
	host := b.Region(64)
	local := a.Region(1 << 18)
	a.Post(qp.SendWR{Op: wr.OpWrite, SGE: sges(local, 1<<18), RemoteAddr: remote.Addr(), RKey: remote.RKey()})
	for late.Pending() == 0 {
		require.True(t, f.Step())
	}
	a.Post(qp.SendWR{Op: wr.OpWrite, SGE: sges(source, 1<<18), RemoteAddr: remote.Addr(), RKey: remote.RKey()})
	for round := range 3 {
		for _, e := range []*nictest.End{a, b} {
			require.NoError(t, e.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
			e.ToInit(cfg)
		}
		cfg.PSN = [2]roce.PSN{roce.PSN(1000 * (round + 1)), 77}
		a.Connect(b, cfg, 0)
		b.Connect(a, cfg, 1)
		a.Post(qp.SendWR{ID: 5, Op: wr.OpWrite, Flags: wr.Signaled, Inline: []byte("fresh"), RemoteAddr: host.Addr(), RKey: host.RKey()})
		require.Equal(t, uint64(5), success(t, f, a, a.Send).WRID)
		require.Equal(t, "fresh", string(host.Bytes()[:5]))
		clear(host.Bytes())
	}
	f.RunUntil(time.Minute, func() bool { return late.Pending()+lateA.Pending() == 0 })
	f.Settle()
	require.Zero(t, remote.Lent()+source.Lent())
	require.Zero(t, a.Send.Len())
}

// Completions of the send queue come in posting order, unsignaled ones not at all.
func TestCompletionOrder(t *testing.T) {
	f := nictest.New(t, nictest.Config{Hosts: 2, Net: sim.Config{Seed: 4, Link: sim.Link{Loss: 0.1, Reorder: 0.1}}})
	a, b := f.Pair(0, 1, nictest.PairConfig{})
	local, remote := a.Region(1<<16), b.Region(1<<16)
	ops := []wr.Op{wr.OpWrite, wr.OpRead, wr.OpFetchAdd, wr.OpWrite}
	for i := range uint64(100) {
		req := qp.SendWR{ID: i, Op: ops[i%4], SGE: sges(local, 8), RemoteAddr: remote.Addr(), RKey: remote.RKey()}
		if i%2 == 0 {
			req.Flags = wr.Signaled
		}
		if req.Op == wr.OpWrite {
			req.SGE = sges(local, 10000)
		}
		a.Post(req)
	}
	f.RunUntil(time.Minute, func() bool { return a.Send.Len() == 50 })
	for i, c := range a.Take(a.Send) {
		require.Equal(t, uint64(2*i), c.WRID)
		require.NoError(t, c.Err())
	}
}

// When completions are lost, nothing goes on as if they were not: the queue pair
// fails and an event tells.
func TestOverrun(t *testing.T) {
	f := two(t)
	tiny, err := cq.New(2)
	require.NoError(t, err)
	a, b := f.Pair(0, 1, nictest.PairConfig{QP: qp.Config{SendSink: tiny}})
	_ = b
	for range 5 {
		a.Post(qp.SendWR{Op: wr.OpWrite, Flags: wr.Signaled})
	}
	f.RunUntil(time.Second, tiny.Overrun)
	f.Settle()
	require.Equal(t, qp.Err, a.State())
	require.Contains(t, events(a), qp.EventCQErr)
}
