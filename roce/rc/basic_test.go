package rc

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce/wr"
)

// §1.9: segmentation; §3.4: A on the end of a message; §4.12: one ACK a batch.
func TestWriteSegments(t *testing.T) {
	for n, packets := range map[int][]string{
		0:    {"WRITE_ONLY 0 A va+0 len=0"},
		1:    {"WRITE_ONLY 0 A va+0 len=1 [1]"},
		1024: {"WRITE_ONLY 0 A va+0 len=1024 [1024]"},
		1025: {"WRITE_FIRST 0 va+0 len=1025 [1024]", "WRITE_LAST 1 A [1]"},
		3072: {"WRITE_FIRST 0 va+0 len=3072 [1024]", "WRITE_MIDDLE 1 [1024]", "WRITE_LAST 2 A [1024]"},
	} {
		a, b := newPair(t)
		fill(a.mem, 1)
		a.post(a.req(1, wr.OpWrite, 0, n))
		a.drain()
		a.want(packets...)
		a.deliverAll()
		b.want("ACK " + string(rune('0'+len(packets)-1)) + " msn=1")
		b.deliverAll()
		a.wantDone("1:success")
		require.Equal(t, a.mem[:n], b.mem[:n])
		require.Zero(t, b.mem[n])
	}
}

func TestEveryOperation(t *testing.T) {
	a, b := newPair(t)
	fill(a.mem[:40000], 3)
	fill(b.mem[50000:60000], 9)
	b.postRecv(100, 200000, 5000)
	b.postRecv(101, 210000, 5000)
	b.postRecv(102, 220000, 5000)
	b.postRecv(103, 230000, 0)
	binary.NativeEndian.PutUint64(b.mem[70000:], 41)

	a.post(a.req(1, wr.OpSend, 0, 3000))
	imm := a.req(2, wr.OpSendImm, 3000, 77)
	imm.Imm = 0xcafe0001
	a.post(imm)
	a.post(a.req(3, wr.OpWrite, 10000, 9999))
	a.post(a.req(4, wr.OpRead, 50000, 7001))
	faa := a.req(5, wr.OpFetchAdd, 70000, 8)
	faa.SwapAdd = 2
	a.post(faa)
	inv := a.req(6, wr.OpSendInv, 0, 10)
	second, err := b.pd.Register(b.region.Memory(), mr.Options{Access: allRight})
	require.NoError(t, err)
	inv.InvKey = second.RKey()
	a.post(inv)
	wimm := a.req(7, wr.OpWriteImm, 20000, 2500)
	wimm.Imm = 7
	a.post(wimm)
	cas := a.req(8, wr.OpCmpSwap, 70000, 8)
	cas.Compare, cas.SwapAdd = 43, 99
	a.post(cas)
	a.post(a.req(9, wr.OpAtomicWrite, 70008, 8))
	a.exchange()

	a.wantDone("1:success", "2:success", "3:success", "4:success", "5:success", "6:success", "7:success", "8:success", "9:success")
	require.Equal(t, a.mem[:3000], b.mem[200000:203000])
	require.Equal(t, a.mem[3000:3077], b.mem[210000:210077])
	require.Equal(t, a.mem[10000:19999], b.mem[10000:19999])
	require.Equal(t, b.mem[50000:57001], a.mem[50000:57001])
	require.Equal(t, a.mem[20000:22500], b.mem[20000:22500])
	require.EqualValues(t, 99, binary.NativeEndian.Uint64(b.mem[70000:]))
	require.EqualValues(t, 43, binary.NativeEndian.Uint64(a.mem[70000:]), "the CAS returns what the FAA left")
	require.Equal(t, []byte{1, 2, 3, 4, 5, 6, 7, 8}, b.mem[70008:70016])
	_, err = b.pd.Remote(second.RKey(), second.Addr(), 1, mr.RemoteRead)
	require.ErrorIs(t, err, mr.ErrRevoked)

	require.Len(t, b.done, 4)
	r := b.done
	require.Equal(t, []uint64{100, 101, 102, 103}, []uint64{r[0].WRID, r[1].WRID, r[2].WRID, r[3].WRID})
	require.Equal(t, []uint32{3000, 77, 10, 2500}, []uint32{r[0].ByteLen, r[1].ByteLen, r[2].ByteLen, r[3].ByteLen})
	require.Equal(t, cq.WithImm, r[1].Flags)
	require.EqualValues(t, 0xcafe0001, r[1].Imm)
	require.Equal(t, cq.WithInv, r[2].Flags)
	require.Equal(t, second.RKey(), r[2].InvKey)
	require.Equal(t, cq.OpRecvWriteImm, r[3].Opcode)
	require.EqualValues(t, 7, r[3].Imm)
}

// §3.16: unsignaled requests complete silently, in order with the rest.
func TestUnsignaled(t *testing.T) {
	a, _ := newPair(t)
	for i := range 10 {
		r := a.req(uint64(i), wr.OpWrite, i*10, 10)
		if i%5 != 4 {
			r.Flags = 0
		}
		a.post(r)
	}
	a.exchange()
	a.wantDone("4:success", "9:success")
	require.Zero(t, a.rc.Outstanding())
}

func TestSendQueueFull(t *testing.T) {
	a, _ := newPair(t)
	for i := range 64 {
		a.post(a.req(uint64(i), wr.OpWrite, 0, 8))
	}
	require.ErrorIs(t, a.rc.Post(a.now, a.req(64, wr.OpWrite, 0, 8)), wr.ErrSendQueueFull)
	a.exchange()
	a.post(a.req(64, wr.OpWrite, 0, 8))
}

func TestRequestErrors(t *testing.T) {
	a, _ := newPair(t, withSend(func(s *SendConfig) { s.MaxRead = 0 }))
	long := &wr.Request{Op: wr.OpWrite, Flags: wr.Inline, Inline: make([]byte, 257)}
	sges := &wr.Request{Op: wr.OpWrite, Spans: make([]mr.Span, 5)}
	huge := &wr.Request{Op: wr.OpWrite, Spans: []mr.Span{{Len: 1 << 31}, {Len: 1}}}
	for _, r := range []*wr.Request{{Op: wr.NumOps}, long, sges, huge, a.req(0, wr.OpRead, 0, 8), a.req(0, wr.OpCmpSwap, 0, 4)} {
		require.ErrorIs(t, a.rc.Post(a.now, r), wr.ErrRequest)
	}
	a.drain()
	a.want()
}

// §3.8: a fence waits for READs and atomics, not for WRITEs.
func TestFence(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpRead, 0, 8))
	a.post(a.req(2, wr.OpWrite, 0, 8))
	f := a.req(3, wr.OpWrite, 8, 8)
	f.Flags |= wr.Fence
	a.post(f)
	a.drain()
	a.want("READ_REQ 0 A va+0 len=8", "WRITE_ONLY 1 A va+0 len=8 [8]")
	a.deliverAll()
	b.deliverAll()
	a.drain()
	a.want("WRITE_ONLY 2 A va+8 len=8 [8]")
}

// §3.7: no more READs and atomics than the depth; what is behind them waits.
func TestInitiatorDepth(t *testing.T) {
	a, b := newPair(t, withSend(func(s *SendConfig) { s.MaxRead = 2 }))
	for i := range 3 {
		a.post(a.req(uint64(i), wr.OpFetchAdd, 8*i, 8))
	}
	a.post(a.req(3, wr.OpWrite, 0, 8))
	a.drain()
	a.want("FETCH_ADD 0 A", "FETCH_ADD 1 A")
	a.deliver()
	b.drain()
	b.want("ATOMIC_ACK 0 msn=1 orig=0")
	b.deliverAll()
	a.lose(1)
	a.drain()
	a.want("FETCH_ADD 2 A", "WRITE_ONLY 3 A va+0 len=8 [8]")
}

// §4.8: READ responses carry the MSN that counts the READ, ACKs of later
// requests come after them.
func TestReadThenWrite(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpWrite, 0, 8))
	a.post(a.req(2, wr.OpRead, 0, 2500))
	a.post(a.req(3, wr.OpWrite, 0, 8))
	a.drain()
	a.deliverAll()
	b.want("READ_RESP_FIRST 1 msn=2 [1024]", "READ_RESP_MIDDLE 2 [1024]", "READ_RESP_LAST 3 msn=2 [452]", "ACK 4 msn=3")
	b.deliverAll()
	a.wantDone("1:success", "2:success", "3:success")
}

// A long READ is asked for in parts that the window can take.
func TestLongReadInParts(t *testing.T) {
	a, b := newPair(t, withSend(func(s *SendConfig) { s.WindowPSNs = 16 }))
	fill(b.mem, 5)
	a.post(a.req(1, wr.OpRead, 0, 100_000))
	a.drain()
	a.want("READ_REQ 0 A va+0 len=4096", "READ_REQ 4 A va+4096 len=4096", "READ_REQ 8 A va+8192 len=4096", "READ_REQ 12 A va+12288 len=4096")
	a.exchange()
	a.wantDone("1:success")
	require.Equal(t, b.mem[:100_000], a.mem[:100_000])
}

// The parts of a long READ leave no small rest also where the window is a little less than
// a power of two, and together they never exceed it.
func TestReadParts(t *testing.T) {
	for window, part := range map[uint64]uint64{
		1: 1, 3: 1, 16: 4, 255: 63, 256: 64, 380: 64, 384: 128, 504: 128, 512: 128, 639: 128, 640: 192, 2048: 512,
	} {
		require.Equal(t, part, readPart(window), "window %d", window)
	}
	const mtu, packets = 256, 256
	for _, window := range []int{504, 512} {
		a, b := newPair(t, withMTU(mtu), withSend(func(s *SendConfig) { s.WindowPSNs = window }))
		a.rc.req.win.packets = a.rc.req.win.max
		fill(b.mem, 5)
		a.post(a.req(1, wr.OpRead, 0, packets*mtu))
		a.drain()
		a.want("READ_REQ 0 A va+0 len=32768", "READ_REQ 128 A va+32768 len=32768")
		a.exchange()
		a.wantDone("1:success")
		require.Equal(t, b.mem[:packets*mtu], a.mem[:packets*mtu])

		a.post(a.req(2, wr.OpRead, 0, memSize))
		for r := &a.rc.req; r.una < r.next; {
			a.drain()
			require.LessOrEqual(t, r.send-r.una, uint64(window))
			require.GreaterOrEqual(t, r.rdOut, min(int32(3), int32((r.next-r.una+127)/128)))
			if len(b.sent) == 0 {
				a.deliverAll()
			}
			b.deliver()
		}
		a.wantDone("2:success")

		a.rc.req.win.packets = 100 // less than a part, so there is one alone
		a.post(a.req(3, wr.OpRead, 0, packets*mtu))
		a.drain()
		a.want("READ_REQ 4352 A va+0 len=32768")
	}
}

func TestInlineIsCopied(t *testing.T) {
	a, b := newPair(t)
	data := []byte("inline data")
	a.post(&wr.Request{ID: 1, Op: wr.OpWrite, Flags: wr.Signaled | wr.Inline, Inline: data, RemoteAddr: testVA, RKey: b.region.RKey()})
	clear(data)
	a.exchange()
	a.wantDone("1:success")
	require.Equal(t, "inline data", string(b.mem[:11]))
}

func TestScatterGather(t *testing.T) {
	a, b := newPair(t, withMTU(256))
	fill(a.mem, 8)
	r := a.req(1, wr.OpSend, 0, 0)
	r.Spans = []mr.Span{a.span(0, 100), a.span(1000, 0), a.span(500, 300), a.span(2000, 213)}
	a.post(r)
	b.recvs = []wr.Receive{{ID: 9, Spans: []mr.Span{b.span(7, 1), b.span(100, 600), b.span(5000, 500)}}}
	a.exchange()
	a.wantDone("1:success")
	b.wantDone("9:success")
	sent := append(append(append([]byte{}, a.mem[:100]...), a.mem[500:800]...), a.mem[2000:2213]...)
	got := append(append(append([]byte{}, b.mem[7]), b.mem[100:700]...), b.mem[5000:5012]...)
	require.Equal(t, sent, got)
}

// Solicited asks for an event only where a receive completes (§3.3).
func TestSolicited(t *testing.T) {
	a, b := newPair(t)
	b.postRecv(1, 0, 3000)
	s := a.req(1, wr.OpSend, 0, 2000)
	s.Flags |= wr.Solicited
	w := a.req(2, wr.OpWrite, 0, 10)
	w.Flags |= wr.Solicited
	a.post(s)
	a.post(w)
	a.drain()
	a.want("SEND_FIRST 0 [1024]", "SEND_LAST 1 A SE [976]", "WRITE_ONLY 2 A va+0 len=10 [10]")
	a.exchange()
	require.Equal(t, cq.Solicited, b.done[0].Flags)
}

// §4.12: a plain batch of WRITEs is acknowledged once.
func TestAckCoalesced(t *testing.T) {
	a, b := newPair(t)
	for i := range 16 {
		a.post(a.req(uint64(i), wr.OpWrite, 0, 8))
	}
	a.drain()
	a.deliverAll()
	b.want("ACK 15 msn=16")
}

// §3.4: inside a long message every 16th packet asks for an ACK, and so does the
// one that fills the window.
func TestAckRequestedInLongMessage(t *testing.T) {
	a, _ := newPair(t, withSend(func(s *SendConfig) { s.WindowPSNs = 20 }))
	a.post(a.req(1, wr.OpWrite, 0, 64*1024))
	a.drain()
	asked := []int{}
	for i, p := range a.sent {
		if p[8]&0x80 != 0 {
			asked = append(asked, i)
		}
	}
	require.Len(t, a.sent, 20)
	require.Equal(t, []int{15, 19}, asked)
}

// What may be sent is bounded from outside too: the last packet that may leave asks
// for an ACK, though its message goes on.
func TestAllowance(t *testing.T) {
	a, b := newPair(t)
	fill(a.mem, 1)
	require.NoError(t, a.rc.Post(a.now, a.req(1, wr.OpWrite, 0, 4000)))
	allow := func(cost uint64) (short bool) {
		a.batch.Allow(cost)
		require.False(t, a.rc.Drain(a.now, a.batch))
		for i := range a.batch.Len() {
			a.send(a.batch.At(i))
		}
		short = a.batch.Short()
		a.batch.Reset()
		return short
	}
	const packet = 1024 + wr.PacketCost
	require.True(t, allow(0))
	a.want()
	require.True(t, allow(packet+1)) // the last may exceed it
	a.want("WRITE_FIRST 0 va+0 len=4000 [1024]", "WRITE_MIDDLE 1 A [1024]")
	require.EqualValues(t, 2*packet, a.rc.InFlight())
	a.deliverAll()
	b.want("ACK 1 msn=0")
	a.receive(b.take())
	require.Zero(t, a.rc.InFlight())
	require.False(t, allow(1<<20))
	a.want("WRITE_MIDDLE 2 [1024]", "WRITE_LAST 3 A [928]")
	a.rc.Fail(cq.StatusSuccess)
	require.Zero(t, a.rc.InFlight())
}
