package hostiletest

import (
	"encoding/binary"
	"math"

	"github.com/gohixl/hixl/roce"
)

// mutation changes a field of a packet.
type mutation struct {
	name string
	do   func(c *conn, p *roce.Packet)
}

var mutations = []mutation{
	{"opcode", func(c *conn, p *roce.Packet) { p.Opcode = roce.Opcode(c.w.rng.IntN(0x20)) }},
	{"opcode of anybody", func(c *conn, p *roce.Packet) { p.Opcode = roce.Opcode(c.w.rng.Uint32()) }},
	{"flags", func(c *conn, p *roce.Packet) {
		r := c.w.rng.Uint32()
		p.SE, p.Mig, p.AckReq, p.FECN, p.BECN = r&1 != 0, r&2 != 0, r&4 != 0, r&8 != 0, r&16 != 0
		p.Resv6, p.Resv7 = uint8(r>>8&63), uint8(r>>16&127)
	}},
	{"pad", func(c *conn, p *roce.Packet) { p.Pad = uint8(c.w.rng.IntN(4)) }},
	{"P_Key", func(c *conn, p *roce.Packet) {
		p.PKey = pick(c.w.rng, 0x7FFF, 0x7FFF, 0x8001, 0, 0xFFFE, uint16(c.w.rng.Uint32()))
	}},
	{"PSN near", func(c *conn, p *roce.Packet) { p.PSN = (p.PSN + roce.PSN(c.w.rng.IntN(9)-4)) & mask24 }},
	{"PSN far", func(c *conn, p *roce.Packet) {
		p.PSN = (p.PSN + pick[roce.PSN](c.w.rng, 1<<23, 1<<23-1, 1<<23+1, 1<<22, roce.PSN(c.w.rng.Uint32()))) & mask24
	}},
	{"QPN", func(c *conn, p *roce.Packet) {
		other := roce.QPN(pick(c.w.rng, c.w.conns...).qpn)
		p.DestQP = pick(c.w.rng, other, other, other, p.DestQP+1, 0, 1, mask24, roce.QPN(c.w.rng.Uint32())) & mask24
	}},
	{"rkey", func(c *conn, p *roce.Packet) {
		k := c.someKey()
		p.RETH.RKey, p.Atomic.RKey = k, k
	}},
	{"address", func(c *conn, p *roce.Packet) {
		r, n := pick(c.w.rng, c.w.regions...), uint64(p.RETH.Len)
		va := p.RETH.VA
		va = pick(c.w.rng, va+1, va-1, va+4, r.base, r.base-1, r.base+r.size, r.base+r.size-n, r.base+r.size-n+1,
			0, math.MaxUint64, math.MaxUint64-n, -n, -n-1, 1<<63, c.w.rng.Uint64())
		p.RETH.VA, p.Atomic.VA = va, va
	}},
	{"length", func(c *conn, p *roce.Packet) {
		n, mtu := p.RETH.Len, uint32(c.mtu)
		p.RETH.Len = pick(c.w.rng, 0, n+1, n-1, mtu, mtu+1, mtu-1, 2*mtu, 1<<31, 1<<31+1, math.MaxUint32, 8, uint32(c.w.rng.IntN(1<<14)), c.w.rng.Uint32())
	}},
	{"payload", func(c *conn, p *roce.Packet) {
		n := len(p.Payload)
		n = pick(c.w.rng, 0, 1, 8, n+1, n-1, n+4, n-4, c.mtu, c.mtu+1, c.mtu-1, c.mtu+4, c.mtu-4, 2*c.mtu)
		p.SetPayload(c.w.bytes(max(n, 0)))
	}},
	{"payload and length", func(c *conn, p *roce.Packet) {
		n := pick(c.w.rng, 0, 1, 8, c.mtu, c.mtu+1, c.mtu-1)
		p.SetPayload(c.w.bytes(n))
		p.RETH.Len = uint32(n)
	}},
	{"syndrome", func(c *conn, p *roce.Packet) {
		p.AETH.Syndrome = roce.Syndrome(pick(c.w.rng, synACK, 0, synRNR+12, nakSequence, nakInvalid, nakAccess, nakOperational, 0x64, 0x65, 0x7F, 0x40, 0x80, byte(c.w.rng.Uint32())))
	}},
	{"MSN", func(c *conn, p *roce.Packet) { p.AETH.MSN = c.w.rng.Uint32() & mask24 }},
	{"immediate", func(c *conn, p *roce.Packet) { p.Imm, p.InvKey = c.w.rng.Uint32(), c.someKey() }},
	{"operands", func(c *conn, p *roce.Packet) { p.Atomic.Compare, p.Atomic.SwapAdd = c.w.rng.Uint64(), c.w.rng.Uint64() }},
}

// mutate changes some fields.
func (c *conn) mutate(d *draft, times int) {
	for range times {
		m := pick(c.w.rng, mutations...)
		m.do(c, &d.p)
		d.about += " " + m.name
		d.right = false
	}
}

// damage changes bytes that no field can reach.
func (w *world) damage(b []byte) ([]byte, string) {
	switch w.rng.IntN(6) {
	case 0:
		return b[:w.rng.IntN(len(b)+1)], "cut"
	case 1:
		n := len(b) - 4*w.rng.IntN(8)
		return b[:max(n, 0)], "shortened"
	case 2:
		return append(b, w.bytes(1+w.rng.IntN(16))...), "lengthened"
	case 3:
		b[1] ^= byte(1 + w.rng.IntN(15))
		return b, "version"
	case 4:
		b[0] = byte(w.rng.Uint32())
		return b, "first byte"
	}
	for range 1 + w.rng.IntN(3) {
		i := w.rng.IntN(8 * len(b))
		b[i/8] ^= 1 << (i % 8)
	}
	return b, "bits"
}

// sealings are ways to get an ICRC wrong.
func (w *world) missealed(h heading, b []byte) string {
	end := b[len(b)-icrcLen:]
	if w.link.fixedID { // only what the receiver sees may differ
		h.id = 0
	}
	kind := w.rng.IntN(7)
	switch kind {
	case 0:
		h.port++
	case 1:
		h.src = w.link.addr(w.rng.IntN(numHosts))
	case 2:
		h.dst = w.link.addr(hostPeers)
	case 3:
		h.id ^= 1 << w.rng.IntN(16)
	}
	binary.LittleEndian.PutUint32(end, h.sum(b))
	switch kind {
	case 4:
		end[0], end[1], end[2], end[3] = end[3], end[2], end[1], end[0]
	case 5:
		clear(end)
	case 6:
		i := w.rng.IntN(8 * len(b))
		b[i/8] ^= 1 << (i % 8)
	}
	return "mis-sealed"
}

// load makes a datagram of a draft for connection c: from where, sealed how.
func (c *conn) load(d *draft) shot {
	w, rng := c.w, c.w.rng
	s := shot{from: c.peer, port: uint16(rng.Uint32()), about: d.about, b: d.p.Append(make([]byte, 0, d.p.Len()+16))}
	if !w.link.fixedID && rng.IntN(2) == 0 {
		s.id = pick(rng, uint16(rng.IntN(128)), uint16(rng.Uint32()))
	}
	if rng.IntN(10) == 0 {
		s.tos = byte(rng.Uint32())
	}
	if rng.IntN(12) == 0 {
		var how string
		s.b, how = w.damage(s.b)
		s.about += " " + how
	}
	if rng.IntN(12) == 0 {
		s.from = hostStranger + rng.IntN(numHosts-hostStranger)
		s.about += " from elsewhere"
	}
	return w.seal(s)
}

// seal closes a datagram, one time in ten wrongly.
func (w *world) seal(s shot) shot {
	if w.link.sockets {
		s.port = w.hosts[s.from].conn.SourcePort(s.port)
		s.b = s.b[:min(len(s.b), 4096)]
	}
	if len(s.b) == 0 {
		s.b = []byte{0}
	}
	if len(s.b) < 5+icrcLen {
		return s
	}
	h := heading{w.hosts[s.from].addr, w.link.addr(hostNIC), s.port, s.id}
	if w.rng.IntN(10) == 0 {
		s.about += " " + w.missealed(h, s.b)
		return s
	}
	binary.LittleEndian.PutUint32(s.b[len(s.b)-icrcLen:], h.sum(s.b))
	if w.rng.IntN(25) == 0 {
		s.b = append(s.b, w.bytes(1+w.rng.IntN(12))...) // behind the ICRC: a trailer that UDP counts
		s.about += " with a trailer"
	}
	return s
}
