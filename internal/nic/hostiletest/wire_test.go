package hostiletest

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"net/netip"
	"strings"

	"github.com/gohixl/hixl/internal/nic"
)

var be = binary.BigEndian

// layout is a row of §1.9: which way a packet goes (q request, r response, n
// notification), its extension headers in order, and its payload rule.
type layout struct {
	dir     byte
	headers string // letters of headerSize
	payload byte   // M exactly the MTU, L 1 to it, O 0 to it, 8, or - none
}

// headerSize has a letter for DETH, XRCETH, FETH, RETH, AtomicETH, AETH,
// AtomicAckETH, ImmDt, IETH and the reserved bytes of a CNP (§1.8, §1.11).
var headerSize = map[rune]int{'D': 8, 'X': 4, 'F': 4, 'R': 16, 'T': 28, 'A': 4, 'K': 8, 'I': 4, 'V': 4, 'C': 16}

var rcLayouts = map[byte]layout{
	0x00: {'q', "", 'M'}, 0x01: {'q', "", 'M'}, 0x02: {'q', "", 'L'}, 0x03: {'q', "I", 'L'}, 0x04: {'q', "", 'O'}, 0x05: {'q', "I", 'O'},
	0x06: {'q', "R", 'M'}, 0x07: {'q', "", 'M'}, 0x08: {'q', "", 'L'}, 0x09: {'q', "I", 'L'}, 0x0A: {'q', "R", 'O'}, 0x0B: {'q', "RI", 'O'},
	0x0C: {'q', "R", '-'}, 0x0D: {'r', "A", 'M'}, 0x0E: {'r', "", 'M'}, 0x0F: {'r', "A", 'L'}, 0x10: {'r', "A", 'O'}, 0x11: {'r', "A", '-'},
	0x12: {'r', "AK", '-'}, 0x13: {'q', "T", '-'}, 0x14: {'q', "T", '-'}, 0x16: {'q', "V", 'L'}, 0x17: {'q', "V", 'O'},
	0x1C: {'q', "FR", '-'}, 0x1D: {'q', "R", '8'},
}

const opCNP = 0x81

// layouts are those of all opcodes that anybody sends; RD is not among them.
var layouts = func() (t [256]layout) {
	for op, l := range rcLayouts {
		t[op] = l
		if op <= 0x0B {
			t[0x20|op] = l
		}
		if op <= 0x17 {
			if l.dir == 'q' {
				l.headers = "X" + l.headers
			}
			t[0xA0|op] = l
		}
	}
	t[0x64], t[0x65] = layout{'q', "D", 'O'}, layout{'q', "DI", 'O'}
	t[opCNP] = layout{'n', "C", '-'}
	return t
}()

const (
	bthLen  = 12
	icrcLen = 4
)

// packet is what a packet says, read by §1.7 to §1.9.
type packet struct {
	op, pad       byte
	se, ackReq    bool
	pkey          uint16
	qpn, psn      uint32
	va            uint64
	rkey, length  uint32
	swap, compare uint64
	syndrome      byte
	msn           uint32
	original      uint64
	imm, inv      uint32
	qkey, source  uint32
	payload       []byte
	layout        layout
}

func (p *packet) request() bool { return p.layout.dir == 'q' }

// drops is a set of reasons to drop a packet.
type drops uint16

func because(list ...nic.Drop) (s drops) {
	for _, d := range list {
		s |= 1 << d
	}
	return s
}

// parse reads a UDP payload. When it is no packet, the set says why; where two
// rules are broken, the reference names no order.
func parse(b []byte) (p packet, why drops) {
	if len(b) < bthLen+icrcLen {
		return p, because(nic.DropLength)
	}
	l := layouts[b[0]]
	if l.dir == 0 {
		return p, because(nic.DropOpcode)
	}
	ext := 0
	for _, h := range l.headers {
		ext += headerSize[h]
	}
	pad := b[1] >> 4 & 3
	if bthLen+ext+int(pad)+icrcLen > len(b) {
		why |= because(nic.DropLength)
	}
	if b[1]&15 != 0 {
		why |= because(nic.DropVersion)
	}
	if why != 0 {
		return p, why
	}
	p = packet{
		op: b[0], pad: pad, se: b[1]>>7 != 0, pkey: be.Uint16(b[2:]), qpn: be.Uint32(b[4:]) & mask24,
		ackReq: b[8]>>7 != 0, psn: be.Uint32(b[8:]) & mask24, layout: l,
	}
	at := b[bthLen:]
	for _, h := range l.headers {
		p.header(h, at)
		at = at[headerSize[h]:]
	}
	p.payload = b[bthLen+ext : len(b)-icrcLen-int(pad)]
	return p, 0
}

func (p *packet) header(h rune, b []byte) {
	switch h {
	case 'D':
		p.qkey, p.source = be.Uint32(b), be.Uint32(b[4:])&mask24
	case 'R':
		p.va, p.rkey, p.length = be.Uint64(b), be.Uint32(b[8:]), be.Uint32(b[12:])
	case 'T':
		p.va, p.rkey, p.swap, p.compare = be.Uint64(b), be.Uint32(b[8:]), be.Uint64(b[12:]), be.Uint64(b[20:])
	case 'A':
		p.syndrome, p.msn = b[0], be.Uint32(b)&mask24
	case 'K':
		p.original = be.Uint64(b)
	case 'I':
		p.imm = be.Uint32(b)
	case 'V':
		p.inv = be.Uint32(b)
	}
}

// rightLength is the payload rule of §1.9 with the pad that goes with it.
func (p *packet) rightLength(mtu int) bool {
	n, ok := len(p.payload), false
	switch p.layout.payload {
	case 'M':
		ok = n == mtu
	case 'L':
		ok = n > 0 && n <= mtu
	case 'O':
		ok = n <= mtu
	case '8':
		ok = n == 8
	case '-':
		ok = n == 0
	}
	return ok && (n+int(p.pad))%4 == 0 && int(p.pad) == (4-n%4)%4
}

const mask24 = 1<<24 - 1

// distance is a-b with the sign that the 24-bit circle gives it (§0).
func distance(a, b uint32) int { return int(int32((a-b)<<8) >> 8) }

// heading is what the ICRC covers outside the UDP payload.
type heading struct {
	src, dst netip.Addr
	port, id uint16
}

// sum is the ICRC of §2.1 for a UDP payload, whose last four bytes it leaves out.
func (h heading) sum(b []byte) uint32 {
	head := []byte(strings.Repeat("\xff", 8))
	n := uint16(8 + len(b))
	if h.src.Is4() {
		head = append(head, 0x45, 0xFF)
		head = be.AppendUint16(head, 20+n)
		head = be.AppendUint16(head, h.id)
		head = append(head, 0x40, 0, 0xFF, 17, 0xFF, 0xFF)
	} else {
		head = append(head, 0x6F, 0xFF, 0xFF, 0xFF)
		head = be.AppendUint16(head, n)
		head = append(head, 17, 0xFF)
	}
	head = append(append(head, h.src.AsSlice()...), h.dst.AsSlice()...)
	head = be.AppendUint16(head, h.port)
	head = be.AppendUint16(head, 4791)
	head = be.AppendUint16(head, n)
	head = append(head, 0xFF, 0xFF)
	head = append(head, b[:4]...)
	head = append(head, 0xFF)
	return crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, b[5:len(b)-icrcLen])
}

// sealed reports whether b ends with its ICRC.
func (h heading) sealed(b []byte) bool {
	return binary.LittleEndian.Uint32(b[len(b)-icrcLen:]) == h.sum(b)
}

// sealedBy is sealed for a receiver that cannot see the identification, and that
// takes any up to the limit. The sum is linear in its bits, and they are
// independent, so at most one fits.
func (h heading) sealedBy(b []byte, limit int) bool {
	if h.sealed(b) && (h.src.Is6() || int(h.id) <= limit) {
		return true
	}
	if h.src.Is6() {
		return false
	}
	h.id = 0
	zero := h.sum(b)
	diff, id := zero^binary.LittleEndian.Uint32(b[len(b)-icrcLen:]), 0
	var pivots [32]struct {
		bits uint32
		id   int
	}
	for i := range 16 {
		h.id = 1 << i
		v, k := h.sum(b)^zero, 1<<i
		for v != 0 {
			p := &pivots[bits.Len32(v)-1]
			if p.bits == 0 {
				p.bits, p.id = v, k
				break
			}
			v, k = v^p.bits, k^p.id
		}
	}
	for diff != 0 {
		p := &pivots[bits.Len32(diff)-1]
		if p.bits == 0 {
			return false
		}
		diff, id = diff^p.bits, id^p.id
	}
	return id <= limit
}
