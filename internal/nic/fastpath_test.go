package nic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/sim"
)

// meter counts what a NIC asks of the system: looks at the clock, and writes, of which
// it keeps each packet.
type meter struct {
	transport.Conn
	looks  int
	writes []write
}

// write is one call of WriteBatch: the packets of each Tx.
type write [][]header

type header struct {
	op  roce.Opcode
	to  roce.QPN
	psn roce.PSN
}

// trains are the sizes of a write's trains.
func (w write) trains() (sizes []int) {
	for _, train := range w {
		sizes = append(sizes, len(train))
	}
	return sizes
}

// psns are the PSNs of requests to one queue pair, in the order of the wire.
func (w write) psns(to roce.QPN) (list []roce.PSN) {
	for _, train := range w {
		for _, h := range train {
			if h.to == to && h.op.IsRequest() {
				list = append(list, h.psn)
			}
		}
	}
	return list
}

// upTo is the PSNs from first on, n of them.
func upTo(first roce.PSN, n int) (list []roce.PSN) {
	for i := range n {
		list = append(list, first.Add(i))
	}
	return list
}

func (m *meter) WriteBatch(b []transport.Tx) (int, error) {
	var w write
	for i := range b {
		var train []header
		for k := range b[i].Packets() {
			var p roce.Packet
			if err := p.Decode(b[i].Packet(k)); err != nil {
				return 0, err
			}
			train = append(train, header{p.Opcode, p.DestQP, p.PSN})
		}
		w = append(w, train)
	}
	m.writes = append(m.writes, w)
	return m.Conn.WriteBatch(b)
}

// metered is a fabric of two hosts whose trains have up to 16 packets, and their meters.
func metered(t *testing.T) (*nictest.Fabric, [2]*meter) {
	var m [2]*meter
	f := nictest.New(t, nictest.Config{
		Hosts: 2, Net: sim.Config{Trains: 16, Link: sim.Link{Delay: 10 * time.Microsecond}},
		Tune: func(host int, c *nic.Config) {
			x, clock := &meter{Conn: c.Conn}, c.Clock
			m[host] = x
			c.Conn, c.Clock = x, func() mono.Time {
				x.looks++
				return clock()
			}
		},
	})
	return f, m
}

// window is what a connection sends without an answer, in packets.
const window = 64

// joined is a connection from host 0 to host 1 with memory at both ends.
type joined struct {
	a, b          *nictest.End
	local, remote *mr.Region
}

func join(f *nictest.Fabric, pairs, size int) (list []joined) {
	for range pairs {
		var c joined
		c.a, c.b = f.Pair(0, 1, nictest.PairConfig{MTU: roce.MTU1024, QP: qp.Config{MaxSendWR: 256, MaxRecvWR: 256}, Tuning: qp.Tuning{WindowPSNs: window}})
		c.local, c.remote = c.a.Region(size), c.b.Region(size)
		list = append(list, c)
	}
	return list
}

func (c *joined) wr(op wr.Op, size int) qp.SendWR {
	return qp.SendWR{Op: op, Flags: wr.Signaled, SGE: sges(c.local, size), RemoteAddr: c.remote.Addr(), RKey: c.remote.RKey()}
}

// A batch is handled with one look at the clock, however many packets of however many
// queue pairs it brings and has as its answer: requests, responses and acknowledgements.
func TestClockIsReadOnceABatch(t *testing.T) {
	for _, op := range []wr.Op{wr.OpWrite, wr.OpSend, wr.OpRead} {
		f, m := metered(t)
		const pairs, messages, size = 8, 8, 8 << 10
		all := join(f, pairs, size)
		for range messages {
			for i := range all {
				all[i].b.Receive(qp.RecvWR{SGE: sges(all[i].remote, size)})
				all[i].a.Post(all[i].wr(op, size))
			}
		}
		var most [2]uint64 // packets of the largest batch
		for range 100 {
			f.Net.Advance(f.Now().Add(10 * time.Microsecond))
			for host, n := range f.NICs {
				for worked := true; worked; {
					before := n.Stats().RxPackets
					m[host].looks = 0
					worked = n.Progress()
					require.LessOrEqual(t, m[host].looks, 1, "%v", op)
					require.Equal(t, worked, m[host].looks == 1, "%v", op)
					most[host] = max(most[host], n.Stats().RxPackets-before)
				}
			}
		}
		for i := range all {
			require.Equal(t, messages, all[i].a.Send.Len(), "%v", op)
		}
		// As the messages alternate, that is several packets of each queue pair, or an
		// answer of each at least.
		require.GreaterOrEqual(t, min(most[0], most[1]), uint64(2*pairs), "%v: %d", op, most)
	}
}

// Posting looks at the clock as often for a list of many packets as for one.
func TestClockIsReadOnceAPost(t *testing.T) {
	f, m := metered(t)
	c := join(f, 1, 1<<20)[0]
	for _, tt := range []struct{ messages, size int }{{1, 8}, {64, 8}, {1, 100 << 10}, {16, 4 << 10}} {
		var list []qp.SendWR
		for range tt.messages {
			list = append(list, c.wr(wr.OpWrite, tt.size))
		}
		sent := c.a.NIC.Stats().TxPackets
		m[0].looks = 0
		c.a.Post(list...)
		require.Equal(t, 1, m[0].looks, "%d messages of %d bytes", tt.messages, tt.size)
		require.GreaterOrEqual(t, c.a.NIC.Stats().TxPackets-sent, uint64(tt.messages))

		// Who posts and rings by itself has brought the time along.
		now := f.Now()
		m[0].looks = 0
		require.NoError(t, c.a.Queue.Post(now, list))
		c.a.Ring(now)
		require.Zero(t, m[0].looks)
		f.RunUntil(time.Second, func() bool { return c.a.Send.Len() == 2*tt.messages })
		c.a.Take(c.a.Send)
	}
}

// Who had a full window sends on in the pass that brings the answer, before it returns,
// in one write: whoever drives the NIC, and all that the window then allows.
func TestAnswerSendsTheNextTrain(t *testing.T) {
	for name, pass := range map[string]func(f *nictest.Fabric){
		"poll":     func(f *nictest.Fabric) { f.NICs[0].Poll(f.Now()) },
		"progress": func(f *nictest.Fabric) { f.NICs[0].Progress() },
	} {
		for _, pairs := range []int{1, 4} {
			f, m := metered(t)
			all := join(f, pairs, 1<<20)
			for i := range all {
				all[i].a.Post(all[i].wr(wr.OpWrite, 1<<20))
				require.Equal(t, upTo(0, window), m[0].writes[i].psns(all[i].b.QPN()), "a window")
			}
			m[0].writes = nil
			f.NICs[0].Poll(f.Now())
			require.Empty(t, m[0].writes, "it is full")

			f.Net.Advance(f.Now().Add(10 * time.Microsecond))
			for f.NICs[1].Poll(f.Now()) {
			}
			f.Net.Advance(f.Now().Add(10 * time.Microsecond))
			before := f.NICs[0].Stats().RxPackets
			pass(f)
			require.GreaterOrEqual(t, f.NICs[0].Stats().RxPackets-before, uint64(pairs))
			require.Len(t, m[0].writes, 1, "%s: %d queue pairs", name, pairs)
			for i := range all {
				require.Equal(t, upTo(window, window), m[0].writes[0].psns(all[i].b.QPN()), "the next window")
			}
			for _, n := range m[0].writes[0].trains() {
				require.Equal(t, 16, n)
			}
			for f.NICs[0].Poll(f.Now()) {
			}
			require.Len(t, m[0].writes, 1, "%s: nothing was left to send", name)
		}
	}
}

// A list of small messages is one write, in which trains go across messages; so are
// lists that were posted one after the other and rung for once.
func TestListIsOneWrite(t *testing.T) {
	const n = window
	for name, post := range map[string]func(f *nictest.Fabric, c *joined, list []qp.SendWR){
		"post": func(_ *nictest.Fabric, c *joined, list []qp.SendWR) { c.a.Post(list...) },
		"ring": func(f *nictest.Fabric, c *joined, list []qp.SendWR) {
			for i := range list {
				require.NoError(t, c.a.Queue.Post(f.Now(), list[i:i+1]))
			}
			c.a.Ring(f.Now())
		},
	} {
		f, m := metered(t)
		c := join(f, 1, n*64)[0]
		var list []qp.SendWR
		for i := range n {
			w := c.wr(wr.OpWrite, 64)
			w.SGE = []mr.SGE{c.local.SGE(uint64(i*64), 64)}
			list = append(list, w)
		}
		post(f, &c, list)
		require.Len(t, m[0].writes, 1, name)
		require.Equal(t, upTo(0, n), m[0].writes[0].psns(c.b.QPN()), name)
		require.Equal(t, []int{16, 16, 16, 16}, m[0].writes[0].trains(), name)
	}
}
