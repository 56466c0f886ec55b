package hostiletest

import (
	"encoding/binary"
	"testing"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport/sim"
)

// Bits of the byte that precedes each packet of a fuzz input.
const (
	fuzzConn     = 0x03 // which connection; its QPN is put in
	fuzzUnsealed = 0x04 // the last four bytes stay as they are
	fuzzForeign  = 0x08 // not from the peer's address
	fuzzNearPSN  = 0x10 // a byte follows: distance from the expected PSN
	fuzzAim      = 0x20 // a byte follows: the region whose address and key are put in
	fuzzRaw      = 0x40 // nothing is put in
)

// fuzzLimit bounds the packets of an input.
const fuzzLimit = 64

// FuzzNIC throws packets made of any bytes at a live NIC: whatever they are, it
// does not panic; what is not sealed or from elsewhere changes nothing; and what
// is sealed does what the model says. An input is a list of packets, each with a
// byte of the bits above, its arguments, a 16-bit length and as many bytes from
// the BTH to the pad.
func FuzzNIC(f *testing.F) {
	for op := range rcLayouts {
		p := roce.Packet{Opcode: roce.Opcode(op), PKey: 0xFFFF, AckReq: true}
		p.RETH.Len, p.AETH.Syndrome = 8, roce.Syndrome(synACK)
		switch layouts[op].payload {
		case 'M':
			p.SetPayload(make([]byte, 256))
		case 'L', 'O', '8':
			p.SetPayload(make([]byte, 8))
		}
		b := p.Append(nil)
		f.Add(fuzzPacket(nil, fuzzNearPSN|fuzzAim, []byte{0, 0}, b[:len(b)-icrcLen]))
		f.Add(fuzzPacket(nil, fuzzUnsealed, nil, b))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		w := newWorld(t, 7, simulated(t, sim.Config{}, false), 0, newTally())
		for range 4 {
			w.addConn()
		}
		for _, c := range w.conns {
			if c.resp.in == (kind{}) {
				w.begin(false)
				c.postReceive()
				c.postReceive()
				if c.req.next == 0 && c.state != 2 {
					c.postSend()
					c.postSend()
				}
				w.settle()
				w.compare()
			}
		}
		for n := 0; len(in) > 0 && n < fuzzLimit; n++ {
			var s shot
			if s, in = w.fuzzed(in); len(s.b) == 0 {
				break
			}
			w.begin(false)
			w.fire(s)
			w.flush()
		}
		w.finish(1)
	})
}

// fuzzPacket appends a packet to a fuzz input.
func fuzzPacket(in []byte, how byte, args, b []byte) []byte {
	in = append(append(in, how), args...)
	return append(be.AppendUint16(in, uint16(len(b))), b...)
}

// fuzzed takes the next packet from a fuzz input; without bytes when it has ended.
func (w *world) fuzzed(in []byte) (shot, []byte) {
	take := func(n int) []byte {
		n = min(n, len(in))
		b := in[:n]
		in = in[n:]
		return b
	}
	one := func() byte {
		if b := take(1); len(b) == 1 {
			return b[0]
		}
		return 0
	}
	how := one()
	c := w.conns[how&fuzzConn]
	near, aim := 0, byte(0)
	if how&fuzzNearPSN != 0 {
		near = int(int8(one()))
	}
	if how&fuzzAim != 0 {
		aim = one()
	}
	n := int(one())<<8 | int(one())
	b := append(make([]byte, 0, 2100), take(min(n, 2048))...)
	if how&fuzzRaw == 0 && len(b) >= bthLen {
		c.complete(b, near, how&fuzzNearPSN != 0, how&fuzzAim != 0, w.regions[int(aim)%len(w.regions)])
	}
	s := shot{from: c.peer, port: 0xC000, about: "fuzzed", b: b}
	if how&fuzzForeign != 0 {
		s.from = hostPeers + (c.peer-hostPeers+1)%(numHosts-hostPeers)
	}
	if how&fuzzUnsealed == 0 && len(b) > 4 {
		h := heading{w.hosts[s.from].addr, w.link.addr(hostNIC), s.port, 0}
		s.b = append(b, make([]byte, icrcLen)...)
		binary.LittleEndian.PutUint32(s.b[len(b):], h.sum(s.b))
	}
	return s, in
}

// complete puts into a packet what a fuzzer cannot guess.
func (c *conn) complete(b []byte, near int, psn, aim bool, r *region) {
	be.PutUint32(b[4:], uint32(b[4])<<24|c.qpn)
	l := layouts[b[0]]
	if psn {
		from := c.resp.psn
		if l.dir == 'r' {
			from = c.req.psn(c.req.una)
		}
		be.PutUint32(b[8:], uint32(b[8])<<24|(from+uint32(near))&mask24)
	}
	if aim && len(l.headers) > 0 && (l.headers[0] == 'R' || l.headers[0] == 'T') && len(b) >= bthLen+12 {
		be.PutUint64(b[bthLen:], be.Uint64(b[bthLen:])+r.base)
		be.PutUint32(b[bthLen+8:], be.Uint32(b[bthLen+8:])^r.rkey)
	}
}
