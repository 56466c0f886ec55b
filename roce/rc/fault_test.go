package rc

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// §4.14, a row a case: what the wire says, what the requester sees, what the
// receive completes with.
func TestFaults(t *testing.T) {
	noAccess := func(x mr.Access) opt { return withResponder(func(c *Config) { c.Access = qpRight &^ x }) }
	cases := []struct {
		name  string
		opts  []opt
		setup func(a, b *end) *wr.Request
		wire  string
		peer  string
		local []string
	}{
		{name: "wrong rkey", setup: func(a, b *end) *wr.Request {
			r := a.req(1, wr.OpWrite, 0, 3000)
			r.RKey ^= 0x5a00
			return r
		}, wire: "NAK-access 0 msn=0", peer: "1:remote access error"},
		{name: "out of range", setup: func(a, b *end) *wr.Request { return at(a.req(1, wr.OpRead, 0, 64), testVA+memSize-10) }, wire: "NAK-access 0 msn=0", peer: "1:remote access error"},
		{name: "address wraps", setup: func(a, b *end) *wr.Request { return at(a.req(1, wr.OpRead, 0, 64), ^uint64(0)-10) }, wire: "NAK-access 0 msn=0", peer: "1:remote access error"},
		{name: "region without remote write", setup: func(a, b *end) *wr.Request {
			return to(a.req(1, wr.OpWrite, 0, 64), b, mr.LocalWrite|mr.RemoteRead)
		}, wire: "NAK-access 0 msn=0", peer: "1:remote access error"},
		{name: "region without remote atomic", setup: func(a, b *end) *wr.Request {
			return to(a.req(1, wr.OpCmpSwap, 0, 8), b, mr.LocalWrite|mr.RemoteRead|mr.RemoteWrite)
		}, wire: "NAK-access 0 msn=0", peer: "1:remote access error"},
		{name: "READ not enabled", opts: []opt{noAccess(mr.RemoteRead)}, setup: func(a, b *end) *wr.Request { return a.req(1, wr.OpRead, 0, 8) }, wire: "NAK-inv 0 msn=0", peer: "1:remote invalid request error"},
		{name: "WRITE not enabled", opts: []opt{noAccess(mr.RemoteWrite)}, setup: func(a, b *end) *wr.Request { return a.req(1, wr.OpWrite, 0, 8) }, wire: "NAK-inv 0 msn=0", peer: "1:remote invalid request error"},
		{name: "ATOMIC WRITE not enabled", opts: []opt{noAccess(mr.RemoteWrite)}, setup: func(a, b *end) *wr.Request { return a.req(1, wr.OpAtomicWrite, 0, 8) }, wire: "NAK-inv 0 msn=0", peer: "1:remote invalid request error"},
		{name: "atomic not enabled", opts: []opt{noAccess(mr.RemoteAtomic)}, setup: func(a, b *end) *wr.Request { return a.req(1, wr.OpFetchAdd, 0, 8) }, wire: "NAK-inv 0 msn=0", peer: "1:remote invalid request error"},
		{name: "depth 0", opts: []opt{withResponder(func(c *Config) { c.MaxDestRead = 0 })}, setup: func(a, b *end) *wr.Request { return a.req(1, wr.OpRead, 0, 8) }, wire: "NAK-inv 0 msn=0", peer: "1:remote invalid request error"},
		{name: "misaligned atomic", setup: func(a, b *end) *wr.Request { return at(a.req(1, wr.OpFetchAdd, 0, 8), testVA+4) }, wire: "NAK-inv 0 msn=0", peer: "1:remote invalid request error"},
		{name: "misaligned ATOMIC WRITE", setup: func(a, b *end) *wr.Request { return at(a.req(1, wr.OpAtomicWrite, 0, 8), testVA+1) }, wire: "NAK-inv 0 msn=0", peer: "1:remote invalid request error"},
		{name: "short receive", setup: func(a, b *end) *wr.Request {
			b.postRecv(9, 0, 16)
			return a.req(1, wr.OpSend, 0, 64)
		}, wire: "NAK-inv 0 msn=0", peer: "1:remote invalid request error", local: []string{"9:local length error"}},
		{name: "short receive, later packet", setup: func(a, b *end) *wr.Request { b.postRecv(9, 0, 1500); return a.req(1, wr.OpSend, 0, 4000) }, wire: "NAK-inv 1 msn=0", peer: "1:remote invalid request error", local: []string{"9:local length error"}},
		{name: "WRITE with immediate, wrong rkey", setup: func(a, b *end) *wr.Request {
			b.postRecv(9, 0, 16)
			r := a.req(1, wr.OpWriteImm, 0, 64)
			r.RKey++
			return r
		}, wire: "NAK-access 0 msn=0", peer: "1:remote access error", local: []string{"9:local access error"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, b := newPair(t, c.opts...)
			a.post(c.setup(a, b))
			a.post(a.req(2, wr.OpWrite, 0, 8))
			a.drain()
			a.deliverAll()
			b.want(c.wire)
			b.deliverAll()
			a.wantDone(c.peer, "2:work request flushed error")
			b.wantDone(c.local...)
			require.True(t, a.rc.Failed())
			require.True(t, b.rc.Failed())
			require.False(t, bytes.ContainsFunc(b.mem, func(r rune) bool { return r != 0 }), "nothing was written")
		})
	}
}

func at(r *wr.Request, va uint64) *wr.Request { r.RemoteAddr = va; return r }

// to aims at a region of b with other rights.
func to(r *wr.Request, b *end, access mr.Access) *wr.Request {
	va := uint64(testVA)
	reg, err := b.pd.Register(b.region.Memory(), mr.Options{Access: access, IOVA: &va})
	require.NoError(b.t, err)
	r.RKey = reg.RKey()
	return r
}

// §4.11: without bytes, key and address do not matter.
func TestZeroLengthIgnoresKey(t *testing.T) {
	for _, op := range []wr.Op{wr.OpWrite, wr.OpRead, wr.OpWriteImm} {
		a, b := newPair(t)
		b.postRecv(9, 0, 0)
		r := a.req(1, op, 0, 0)
		r.RKey, r.RemoteAddr = 0xdead, 3
		a.post(r)
		a.exchange()
		a.wantDone("1:success")
	}
}

// §4.5: opcodes out of sequence are invalid requests.
func TestOpcodeSequence(t *testing.T) {
	for _, op := range []byte{0x01, 0x02, 0x03, 0x07, 0x08, 0x09, 0x16} {
		a, b := newPair(t)
		b.postRecv(1, 0, 4000)
		a.post(a.req(1, wr.OpWrite, 0, 3000))
		a.drain()
		a.take()
		p := a.take()
		p[0] = op
		p[11]-- // PSN of the first
		if op == 0x03 || op == 0x09 || op == 0x16 {
			p = append(p, 0, 0, 0, 0)
		}
		b.receive(p)
		b.drain()
		b.want("NAK-inv 0 msn=0")
	}
}

func TestMessageInterrupted(t *testing.T) {
	for _, other := range []wr.Op{wr.OpSend, wr.OpWrite, wr.OpRead, wr.OpFetchAdd} {
		a, b := newPair(t)
		b.postRecv(1, 0, 4000)
		b.postRecv(2, 0, 4000)
		a.post(a.req(1, wr.OpSend, 0, 2000))
		a.post(a.req(2, other, 0, 8))
		a.drain()
		a.deliver()
		a.take()
		p := a.take()
		copy(p[9:12], []byte{0xFF, 0xFF, 0xFF}) // PSN 1
		b.receive(p)
		b.drain()
		b.want("NAK-inv 1 msn=0")
		b.wantDone("1:local QP operation error")
	}
}

// R11: the length rules of First, Middle, Last and Only (§1.9).
func TestPacketLengths(t *testing.T) {
	grow := func(p []byte, n int) []byte { return append(p, make([]byte, n)...) }
	for name, change := range map[string]func([]byte) []byte{
		"First short":           func(p []byte) []byte { return p[:len(p)-4] },
		"First long":            func(p []byte) []byte { return grow(p, 4) },
		"First with pad":        func(p []byte) []byte { p[1] |= 0x10; return p },
		"First of whole length": func(p []byte) []byte { p[26], p[27] = 4, 0; return p },
		"RETH length over 2^31": func(p []byte) []byte { p[24], p[27] = 0x80, 1; return p },
		"Only longer than MTU":  func(p []byte) []byte { p[0] = 0x0a; return grow(p, 4) },
		"Only not all":          func(p []byte) []byte { p[0] = 0x0a; return p },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newPair(t)
			a.post(a.req(1, wr.OpWrite, 0, 3000))
			a.drain()
			b.receive(change(a.take()))
			b.drain()
			b.want("NAK-inv 0 msn=0")
		})
	}
	t.Run("empty Last", func(t *testing.T) {
		a, b := newPair(t)
		a.post(a.req(1, wr.OpWrite, 0, 1028))
		a.drain()
		a.deliver()
		p := a.take()
		b.receive(append(p[:12:12], p[16:]...))
		b.drain()
		b.want("NAK-inv 1 msn=0")
	})
	t.Run("Last leaves some", func(t *testing.T) {
		a, b := newPair(t)
		a.post(a.req(1, wr.OpWrite, 0, 1032))
		a.drain()
		a.deliver()
		p := a.take()
		b.receive(append(p[:12:12], p[16:]...))
		b.drain()
		b.want("NAK-inv 1 msn=0")
	})
}

// RNR comes before length and key (§4.3).
func TestCheckOrder(t *testing.T) {
	a, b := newPair(t)
	r := a.req(1, wr.OpWriteImm, 0, 8)
	r.RKey++
	a.post(r)
	a.drain()
	p := a.sent[0]
	a.deliverAll()
	b.want("RNR(12) 0 msn=0")
	b.postRecv(1, 0, 0)
	b.receive(p)
	b.drain()
	b.lose(1)
	b.want("NAK-access 0 msn=0")

	// The key comes before the payload's length against that of the RETH.
	a, b = newPair(t)
	r = a.req(1, wr.OpWrite, 0, 8)
	r.RKey++
	a.post(r)
	a.drain()
	setLength(a.sent[0], 12)
	a.deliverAll()
	b.want("NAK-access 0 msn=0")
}

// setLength changes the length in the RETH of a packet.
func setLength(b []byte, n uint32) { binary.BigEndian.PutUint32(b[roce.BTHLen+12:], n) }

// §4.10: an invalidation that fails: data placed, acknowledged without being
// counted, the receive completes in error, and the connection ends.
func TestInvalidateFails(t *testing.T) {
	a, b := newPair(t)
	fill(a.mem, 3)
	b.postRecv(9, 0, 64)
	r := a.req(1, wr.OpSendInv, 0, 64)
	r.InvKey = 0x1234
	a.post(r)
	a.drain()
	a.deliverAll()
	b.want("ACK 0 msn=0")
	b.wantDone("9:remote invalid request error")
	require.True(t, b.rc.Failed())
	require.Equal(t, a.mem[:64], b.mem[:64])
}

// §3.17: in ERR packets are dropped without a NAK, and posts complete flushed.
func TestErrorStateIsSilent(t *testing.T) {
	a, b := newPair(t)
	b.rc.Fail(cq.StatusFlushed)
	a.post(a.req(1, wr.OpWrite, 0, 8))
	a.drain()
	a.deliverAll()
	b.want()
	b.post(b.req(5, wr.OpWrite, 0, 8))
	b.wantDone("5:work request flushed error")
}

// §3.17.4: what is posted in the error state is flushed, whatever led there.
func TestPostInErrorState(t *testing.T) {
	a, b := newPair(t)
	bad := a.req(1, wr.OpWrite, 0, 8)
	bad.RKey++
	a.post(bad)
	a.exchange()
	require.True(t, b.rc.Failed())
	b.post(b.req(2, wr.OpWrite, 0, 8))
	b.wantDone("2:work request flushed error")

	c, _ := newPair(t)
	c.rc.Fail(cq.StatusLocalQPOperation) // with nothing outstanding
	c.post(c.req(3, wr.OpWrite, 0, 8))
	c.wantDone("3:work request flushed error")
}

// §4.14: more READs than the depth is an invalid request.
func TestTooManyReads(t *testing.T) {
	a, b := newPair(t, withResponder(func(c *Config) { c.MaxDestRead = 2 }))
	for i := range 3 {
		a.post(a.req(uint64(i), wr.OpRead, 0, 3000))
	}
	a.drain()
	a.deliverAll()
	b.want("READ_RESP_FIRST 0 msn=1 [1024]", "READ_RESP_MIDDLE 1 [1024]", "READ_RESP_LAST 2 msn=1 [952]",
		"READ_RESP_FIRST 3 msn=2 [1024]", "READ_RESP_MIDDLE 4 [1024]", "READ_RESP_LAST 5 msn=2 [952]", "NAK-inv 6 msn=2")
}

// R16, §4.4: a duplicate READ is answered only if it is a part that ends where
// the original ended.
func TestDuplicateReadMustMatch(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p []byte)
		want   []string
	}{
		"same":            {func([]byte) {}, []string{"READ_RESP_FIRST 0 msn=1 [1024]", "READ_RESP_LAST 1 msn=1 [976]"}},
		"shorter":         {func(p []byte) { p[27]-- }, nil},
		"other address":   {func(p []byte) { p[18]++ }, nil},
		"address wraps":   {func(p []byte) { copy(p[12:20], "\xff\xff\xff\xff\xff\xff\xff\xff") }, nil},
		"other key":       {func(p []byte) { p[20]++ }, nil},
		"length 2^32-1":   {func(p []byte) { copy(p[24:28], "\xff\xff\xff\xff") }, nil},
		"other operation": {func(p []byte) { p[0] = 0x14 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newPair(t)
			a.post(a.req(1, wr.OpRead, 0, 2000))
			a.drain()
			p := append([]byte{}, a.sent[0]...)
			a.deliverAll()
			b.lose(2)
			c.change(p)
			if name == "other operation" {
				p = append(p, make([]byte, 12)...)
			}
			b.receive(p)
			b.drain()
			b.want(c.want...)
			require.False(t, b.rc.Failed())
		})
	}
}

// R17: a READ replayed after its region went away must not read it.
func TestDuplicateReadOfRevokedRegion(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpRead, 0, 2000))
	a.drain()
	p := append([]byte{}, a.sent[0]...)
	a.deliverAll()
	b.lose(2)
	require.NoError(t, b.region.Deregister(t.Context()))
	b.receive(p)
	b.drain()
	b.want("NAK-access 0 msn=1")
}

// All 256 opcodes at the expected PSN: no panic, and either silence, an answer
// or a fatal NAK.
func TestAllOpcodes(t *testing.T) {
	a, b := newPair(t)
	a.post(a.req(1, wr.OpWrite, 0, 100))
	a.drain()
	head := a.take()[:12:12]
	for op := range 256 {
		for _, n := range []int{0, 4, 8, 16, 28, 32, 36, 60} {
			b.rc, b.sent = New(b.cfg), nil
			p := append(head, make([]byte, n+4)...)
			p[0], p[1] = byte(op), 0x40
			b.tryReceive(p)
			b.drain()
			require.LessOrEqual(t, len(b.sent), 1, "opcode %#x", op)
		}
	}
}
