package nic_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/internal/nic/nictest"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
	"github.com/gohixl/hixl/transport"
)

// tube is a transport whose owner puts in what is received and takes what is sent.
type tube struct {
	in   []transport.Rx
	sent [][]byte
	room int  // of a slot
	deaf bool // what is sent goes nowhere
	shut bool
}

var tubeHost, tubePeer = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")

const tubePort = 50001

func (c *tube) LocalAddr() netip.Addr    { return tubeHost }
func (c *tube) SourcePort(uint16) uint16 { return tubePort }
func (c *tube) WaitRead() error          { return net.ErrClosed }
func (c *tube) Release([]transport.Rx)   {}
func (c *tube) Stats() transport.Stats   { return transport.Stats{} }
func (c *tube) Close() error             { c.shut = true; return nil }

func (c *tube) Caps() transport.Caps {
	return transport.Caps{KnownID: true, ECN: true, MTU: 4200, RxBuf: c.room}
}

func (c *tube) WriteBatch(b []transport.Tx) (int, error) {
	for i := range b {
		if !c.deaf {
			c.sent = append(c.sent, bytes.Clone(b[i].Data))
		}
	}
	return len(b), nil
}

func (c *tube) ReadBatch(b []transport.Rx, _ bool) (int, error) {
	if c.shut {
		return 0, net.ErrClosed
	}
	n := min(len(b), len(c.in))
	for i := range n {
		buf := b[i].Buf
		b[i] = c.in[i]
		b[i].Buf, b[i].Data = buf, append(buf[:0], c.in[i].Data...)
	}
	c.in = c.in[n:]
	return n, nil
}

// target is a NIC under test with two connections to one peer, the second of which
// is there to revoke the first one's region.
type target struct {
	t       testing.TB
	conn    *tube
	mtu     roce.PathMTU
	small   bool
	nic     *nic.NIC
	qp      [2]*nic.Queue
	cq      *cq.Queue
	recv    *cq.Queue
	region  *mr.Region
	landing *mr.Region
	now     mono.Time
}

const trainMem = 1 << 17

// newTarget has memory of size bytes and slots with room for so many.
func newTarget(t testing.TB, mtu roce.PathMTU, small bool, size, room int) *target {
	w := &target{t: t, conn: &tube{room: room}, mtu: mtu, small: small, now: 1_000_000}
	var err error
	w.nic, err = nic.Open(nic.Config{Conn: w.conn, Clock: func() mono.Time { return w.now }})
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.nic.Close() })
	w.cq, err = cq.New(1 << 12)
	require.NoError(t, err)
	w.recv, err = cq.New(1 << 12)
	require.NoError(t, err)
	pd := w.nic.AllocPD()
	memory, err := host.Alloc(size)
	require.NoError(t, err)
	va := uint64(farVA)
	w.region, err = pd.Register(memory, mr.Options{Access: nictest.AllAccess, IOVA: &va})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, w.region.Deregister(context.Background()))
		require.NoError(t, memory.Close())
	})
	w.landing, err = pd.Register(host.New(make([]byte, trainMem)), mr.Options{Access: nictest.AllAccess})
	require.NoError(t, err)
	for i := range w.qp {
		w.qp[i], err = w.nic.CreateQP(qp.Config{PD: pd, SendSink: w.cq, RecvSink: w.recv})
		require.NoError(t, err)
		w.connect(w.qp[i])
	}
	return w
}

// The first PSNs of both directions, and the address of the memory.
const (
	farPSN  roce.PSN = 0xFFFFF0
	nearPSN roce.PSN = 0xFFFF00
	farVA            = 0x10000
)

// connect brings a queue pair from RESET to RTS.
func (w *target) connect(q *nic.Queue) {
	require.NoError(w.t, q.Modify(&qp.Attr{State: qp.Init, Port: 1, Access: qp.RemoteAccess}, qp.MaskState|qp.MaskPort|qp.MaskPKeyIndex|qp.MaskAccess))
	require.NoError(w.t, q.Modify(&qp.Attr{
		State: qp.RTR, PathMTU: w.mtu, DestQPN: 0x77, RecvPSN: farPSN, MaxDestRead: 16, MinRNRTimer: 1,
		AV: qp.AddressVector{Addr: tubePeer, SmallIDs: w.small},
	}, qp.MaskState|qp.MaskPathMTU|qp.MaskDestQPN|qp.MaskRecvPSN|qp.MaskMaxDestRead|qp.MaskMinRNRTimer|qp.MaskAV))
	require.NoError(w.t, q.Modify(&qp.Attr{State: qp.RTS, SendPSN: nearPSN, Timeout: 10, RetryCount: 7, RNRRetry: 7, MaxRead: 16},
		qp.MaskState|qp.MaskSendPSN|qp.MaskTimeout|qp.MaskRetryCount|qp.MaskRNRRetry|qp.MaskMaxRead))
}

// put encodes packets for this target and leaves them to be received, each by itself or
// in trains.
func (w *target) put(packets []scripted, trains, visible bool) {
	var rx *transport.Rx
	for i := range packets {
		s := &packets[i]
		p := s.p
		p.DestQP = w.qp[s.to].QPN()
		if p.Opcode.Has(roce.HasRETH) {
			p.RETH.RKey = w.region.RKey()
		}
		p.InvKey = w.region.RKey()
		b := p.Append(nil)
		h := roce.Headers{Src: tubePeer, Dst: tubeHost, SrcPort: tubePort, DstPort: roce.Port, Frag: roce.DontFragment, ID: s.id}
		h.Seal(b)
		if s.spoilt > 0 {
			b[s.spoilt%len(b)] ^= 4
		}
		if trains && s.joins {
			rx.Data = append(rx.Data, b...)
			continue
		}
		w.conn.in = append(w.conn.in, transport.Rx{
			Data: b, Src: tubePeer, Dst: tubeHost, SrcPort: tubePort, TOS: s.tos, HaveID: visible, ID: s.id, Frag: roce.DontFragment,
		})
		if rx = &w.conn.in[len(w.conn.in)-1]; trains {
			rx.Seg = len(b)
		}
		if !visible {
			rx.ID = 0
		}
	}
}

// scripted is a packet for either target. It joins the train of the one before.
type scripted struct {
	p      roce.Packet
	to     int
	spoilt int // a byte that is changed
	id     uint16
	tos    uint8
	joins  bool
}

// farEnd is the peer of both targets: a stream of messages that it goes on with where
// the NIC under test says, and the answers to READs.
type farEnd struct {
	rng     *rand.Rand
	mtu     int
	stream  []roce.Packet // PSN in order from farPSN
	at      int
	answers []roce.Packet
	loss    int
}

func (f *farEnd) payload(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(f.rng.Uint32())
	}
	return b
}

// message appends one to the stream.
func (f *farEnd) message() {
	op := wr.OpWrite
	if f.rng.IntN(3) == 0 {
		op = wr.OpSend
	}
	f.cut(op, f.rng.IntN(trainMem/2), f.rng.IntN(trainMem/2))
}

// cut appends the packets of a message of size bytes for offset off.
func (f *farEnd) cut(op wr.Op, off, size int) {
	for at := 0; at < size; at += f.mtu {
		first, last := at == 0, at+f.mtu >= size
		p := roce.Packet{
			Opcode: op.Packet(first, last), PKey: roce.PKeyDefault, Mig: true, AckReq: last || f.rng.IntN(16) == 0,
			PSN: farPSN.Add(len(f.stream)), RETH: roce.RETH{VA: farVA + uint64(off), Len: uint32(size)},
		}
		p.SetPayload(f.payload(min(f.mtu, size-at)))
		f.stream = append(f.stream, p)
	}
}

// batch is what arrives next: packets of the stream and answers in turns of many.
func (f *farEnd) batch() (out []scripted) {
	for len(f.stream)-f.at < 64 {
		f.message()
	}
	for room := 64; room > 8; {
		n := 1 + f.rng.IntN(room-8)
		if len(f.answers) > 0 && f.rng.IntN(2) == 0 {
			n = min(n, len(f.answers))
			out = f.leave(out, f.answers[:n])
			f.answers = f.answers[n:]
		} else {
			n = min(n, len(f.stream)-f.at)
			out = f.leave(out, f.stream[f.at:f.at+n])
			f.at += n
		}
		room = 64 - len(out)
	}
	out = out[:min(len(out), 64)]
	f.join(out)
	return out
}

// leave puts packets on the way, on which some are lost, doubled or spoilt.
func (f *farEnd) leave(out []scripted, packets []roce.Packet) []scripted {
	for _, p := range packets {
		s := scripted{p: p}
		switch f.rng.IntN(f.loss) {
		case 0:
			continue
		case 1:
			out = append(out, s)
		case 2, 3:
			s.spoilt = 1 + f.rng.IntN(1<<16)
		case 4:
			s.spoilt = 8 + f.rng.IntN(4) // of the PSN, or what stands before it
		case 5:
			s.p.SE = true
		case 6:
			s.p.Resv7 = 1
		}
		out = append(out, s)
	}
	return out
}

// join makes trains as a kernel does: of packets of one size, the last of which may be
// smaller.
func (f *farEnd) join(out []scripted) {
	ce := uint8(0)
	for i := range out {
		s := &out[i]
		s.joins = false
		if i > 0 && f.rng.IntN(30) > 0 {
			b := &out[i-1]
			full := !b.joins || b.p.Len() == out[i-2].p.Len()
			s.joins = full && s.p.Len() <= b.p.Len() && int(b.id+2)*b.p.Len() <= 15<<10
			s.id = b.id + 1
		}
		if !s.joins {
			s.id, ce = 0, 2+uint8(f.rng.IntN(8)/7)
		}
		s.tos = ce
	}
}

// hear goes on as the NIC says, which acknowledges, asks for a packet again, or reads.
func (f *farEnd) hear(sent [][]byte) {
	for _, b := range sent {
		var p roce.Packet
		if p.Decode(b) != nil {
			panic("a packet that does not decode")
		}
		switch {
		case p.Opcode == roce.OpReadRequest:
			f.answer(&p)
		case p.Opcode == roce.OpAcknowledge && p.AETH.Syndrome == roce.SynNakSeq:
			f.at = int(p.PSN.Sub(farPSN))
		}
	}
}

func (f *farEnd) answer(q *roce.Packet) {
	n := int(q.RETH.Len)
	for at := 0; at < n; at += f.mtu {
		p := roce.Packet{PKey: roce.PKeyDefault, Mig: true, PSN: q.PSN.Add(at / f.mtu), AETH: roce.AETH{Syndrome: roce.SynACK}}
		switch first, last := at == 0, at+f.mtu >= n; {
		case first && last:
			p.Opcode = roce.OpReadRespOnly
		case first:
			p.Opcode = roce.OpReadRespFirst
		case last:
			p.Opcode = roce.OpReadRespLast
		default:
			p.Opcode = roce.OpReadRespMiddle
		}
		if !p.Opcode.Has(roce.HasAETH) {
			p.AETH = roce.AETH{}
		}
		p.SetPayload(f.payload(min(f.mtu, n-at)))
		f.answers = append(f.answers, p)
	}
}

// revoke is a SEND with invalidate of the second connection, as large as the packets of
// the first one's stream, so that it rides in a train of them.
func (f *farEnd) revoke(out []scripted) {
	i := f.rng.IntN(len(out))
	p := roce.Packet{Opcode: roce.OpSendOnlyInv, PKey: roce.PKeyDefault, Mig: true, AckReq: true, PSN: farPSN}
	p.SetPayload(f.payload(f.mtu - roce.IETHLen))
	out[i].p, out[i].to, out[i].spoilt = p, 1, 0
	f.join(out)
}

// A train has the effect of its packets one by one, whatever was lost, doubled or
// spoilt before and in it, and also when the region is revoked between two of them or
// deregistered before.
func TestTrainIsItsPackets(t *testing.T) {
	var icrc, placed uint64
	seeds := uint64(40)
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 9))
		mtu := []roce.PathMTU{roce.MTU256, roce.MTU256, roce.MTU1024}[rng.IntN(3)]
		small, visible := rng.IntN(2) == 0, rng.IntN(2) == 0
		x, y := newTarget(t, mtu, small, trainMem, 16<<10), newTarget(t, mtu, small, trainMem, 16<<10) // 64 slots a batch
		f := &farEnd{rng: rng, mtu: mtu.Bytes(), loss: []int{40, 400, 1 << 20}[rng.IntN(3)]}
		end, how := 20+rng.IntN(20), rng.IntN(3)
		for round := range end + 4 {
			packets := f.batch()
			for _, w := range []*target{x, y} {
				w.prepare(round)
				if round == end && how == 1 {
					require.NoError(t, w.region.Deregister(context.Background()))
				}
			}
			if round == end && how == 2 {
				f.revoke(packets)
			}
			x.put(packets, false, visible)
			y.put(packets, true, visible)
			for _, w := range []*target{x, y} {
				for w.nic.Poll(w.now) {
					continue
				}
			}
			same(t, x, y, "seed %d round %d", seed, round)
			f.hear(x.conn.sent)
			x.conn.sent, y.conn.sent = nil, nil
		}
		s := y.nic.Stats()
		icrc, placed = icrc+s.Drops[nic.DropICRC], placed+s.RxPackets
	}
	require.Greater(t, icrc, 10*seeds)
	require.Greater(t, placed, 500*seeds)
}

// prepare posts a READ and receives, the same for each target, and lets time pass.
func (w *target) prepare(round int) {
	w.now = w.now.Add(500 * time.Microsecond)
	if sends, _ := w.qp[0].Outstanding(); sends < 4 && round%2 == 0 {
		n := uint32(37*round) % 50000 // in pieces, none of which ends with a packet
		sge := []mr.SGE{w.landing.SGE(0, n/3), w.landing.SGE(60000, n/2), w.landing.SGE(120000, n/7)}
		_ = w.qp[0].PostSend([]qp.SendWR{{ID: uint64(round), Op: wr.OpRead, Flags: wr.Signaled, SGE: sge, RemoteAddr: 1 << 30, RKey: 5}})
	}
	for i := range w.qp {
		if _, receives := w.qp[i].Outstanding(); receives < 8 {
			sge := []mr.SGE{w.landing.SGE(1000, 30001), w.landing.SGE(40000, trainMem/2)}
			_ = w.qp[i].PostRecv([]qp.RecvWR{{ID: uint64(round), SGE: sge}})
		}
	}
}

// same compares all that can be seen of two targets.
func same(t *testing.T, x, y *target, at string, args ...any) {
	require.Equal(t, x.conn.sent, y.conn.sent, append([]any{at}, args...)...)
	require.Equal(t, x.outcome(), y.outcome(), append([]any{at}, args...)...)
	require.True(t, bytes.Equal(x.region.Bytes(), y.region.Bytes()), append([]any{at}, args...)...)
	require.True(t, bytes.Equal(x.landing.Bytes(), y.landing.Bytes()), append([]any{at}, args...)...)
}

type outcome struct {
	done   []cq.Completion
	nic    nic.Stats
	states [2]qp.State
}

func (w *target) outcome() (o outcome) {
	for _, q := range []*cq.Queue{w.cq, w.recv} {
		list := make([]cq.Completion, q.Len())
		n, err := q.Poll(list)
		require.NoError(w.t, err)
		for _, c := range list[:n] {
			c.QPN, c.RKey, c.InvKey = 0, 0, 0
			o.done = append(o.done, c)
		}
	}
	o.nic = w.nic.Stats()
	o.states = [2]qp.State{w.qp[0].State(), w.qp[1].State()}
	return o
}

// BenchmarkReceive is a packet of a WRITE of 1 MiB, of 16 that fill a region of 16 MiB
// in turn: by itself, and in trains of 60 KiB. What a socket does is a copy here.
func BenchmarkReceive(b *testing.B) {
	for _, mtu := range []roce.PathMTU{roce.MTU1024, roce.MTU4096} {
		for _, most := range []int{1, 60 << 10 / mtu.Bytes()} {
			b.Run(fmt.Sprintf("mtu=%d/train=%d", mtu.Bytes(), most), func(b *testing.B) {
				w := newTarget(b, mtu, true, 16<<20, 64<<10)
				w.conn.deaf = true
				f := &farEnd{rng: rand.New(rand.NewPCG(1, 1)), mtu: mtu.Bytes()}
				for i := range 16 {
					f.cut(wr.OpWrite, i<<20, 1<<20)
				}
				var packets []scripted
				for i := range f.stream {
					s := scripted{p: f.stream[i]}
					if last := len(packets) - 1; last >= 0 && packets[last].p.Len() == s.p.Len() && int(packets[last].id)+1 < most {
						s.joins, s.id = true, packets[last].id+1
					}
					packets = append(packets, s)
				}
				w.put(packets, true, false)
				in := w.conn.in
				b.SetBytes(16 << 20)
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer() // a new connection and its first packet make what it needs
					require.NoError(b, w.qp[0].Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
					w.connect(w.qp[0])
					w.conn.in = in[:1]
					w.nic.Poll(w.now)
					b.StartTimer()
					for w.conn.in = in[1:]; w.nic.Poll(w.now); {
						continue
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(packets)), "ns/packet")
				require.Zero(b, w.nic.Stats().Drops)
				require.EqualValues(b, b.N*len(packets), w.nic.Stats().RxPackets)
			})
		}
	}
}
