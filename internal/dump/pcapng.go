package dump

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"

	"github.com/gohixl/hixl/roce"
)

// pcapng is the container of typed blocks: sections, each with its byte order
// and interfaces, and packets.
type pcapng struct {
	order      byteOrder
	interfaces []ngInterface
}

// ngInterface is what an interface block says that packets need.
type ngInterface struct {
	link    roce.LinkType
	snapLen uint32
	tsresol uint8 // units of a second: 10^-n, or 2^-n with the top bit set
	offset  int64 // seconds to add
}

const (
	ngSection   = 0x0A0D0D0A
	ngIface     = 1
	ngOldPacket = 2
	ngSimple    = 3
	ngEnhanced  = 6

	ngByteOrder = 0x1A2B3C4D

	optEnd     = 0
	optTsresol = 9
	optOffset  = 14

	// maxInterfaces bounds what a file can make us keep.
	maxInterfaces = 1 << 16
)

func (f *pcapng) nanoseconds() bool { return true }

func (f *pcapng) next(r *Reader, p *Packet) error {
	for {
		typ, body, err := f.block(r)
		if err != nil {
			return err
		}
		found := false
		switch typ {
		case ngSection:
			f.interfaces = f.interfaces[:0]
		case ngIface:
			err = f.addInterface(r, body)
		case ngEnhanced:
			found, err = true, f.enhanced(r, body, p)
		case ngOldPacket:
			found, err = true, f.oldPacket(r, body, p)
		case ngSimple:
			found, err = true, f.simple(r, body, p)
		}
		if found || err != nil {
			return err
		}
	}
}

// block reads the next block and returns its type and what lies between its
// lengths, and takes over a section's byte order.
func (f *pcapng) block(r *Reader) (typ uint32, body []byte, err error) {
	h, err := r.take(8)
	if err != nil {
		return 0, nil, err
	}
	if binary.LittleEndian.Uint32(h) == ngSection { // a palindrome
		if h, err = r.more(4); err != nil {
			return 0, nil, err
		}
		switch uint32(ngByteOrder) {
		case binary.LittleEndian.Uint32(h[8:]):
			f.order = binary.LittleEndian
		case binary.BigEndian.Uint32(h[8:]):
			f.order = binary.BigEndian
		default:
			return 0, nil, r.fail(ErrCorrupt, "a section has no byte order mark", adviceCorrupt)
		}
	}
	typ, n := f.order.Uint32(h), f.order.Uint32(h[4:])
	if n < 12 || n > maxRecord || n%4 != 0 || int(n) < len(h)+4 {
		return 0, nil, r.fail(ErrCorrupt, fmt.Sprintf("a block claims %d bytes", n), adviceCorrupt)
	}
	b, err := r.more(int(n) - len(h))
	if err != nil {
		return 0, nil, err
	}
	if f.order.Uint32(b[n-4:]) != n {
		return 0, nil, r.fail(ErrCorrupt, "the two lengths of a block differ", adviceCorrupt)
	}
	return typ, b[8 : n-4], nil
}

func (f *pcapng) addInterface(r *Reader, b []byte) error {
	if len(b) < 8 {
		return r.fail(ErrCorrupt, "an interface block is too short", adviceCorrupt)
	}
	if len(f.interfaces) >= maxInterfaces {
		return r.fail(ErrCorrupt, fmt.Sprintf("more than %d interfaces", maxInterfaces), adviceCorrupt)
	}
	i := ngInterface{link: roce.LinkType(f.order.Uint16(b)), snapLen: f.order.Uint32(b[4:]), tsresol: 6}
	for b = b[8:]; len(b) >= 4; {
		code, n := f.order.Uint16(b), int(f.order.Uint16(b[2:]))
		b = b[4:]
		if code == optEnd || n > len(b) {
			break
		}
		switch {
		case code == optTsresol && n >= 1:
			i.tsresol = b[0]
		case code == optOffset && n >= 8:
			i.offset = int64(f.order.Uint64(b))
		}
		b = b[min(len(b), (n+3)&^3):]
	}
	f.interfaces = append(f.interfaces, i)
	return nil
}

func (f *pcapng) enhanced(r *Reader, b []byte, p *Packet) error {
	if len(b) < 20 {
		return r.fail(ErrCorrupt, "a packet block is too short", adviceCorrupt)
	}
	return f.packet(r, f.order.Uint32(b), b, p)
}

func (f *pcapng) oldPacket(r *Reader, b []byte, p *Packet) error {
	if len(b) < 20 {
		return r.fail(ErrCorrupt, "a packet block is too short", adviceCorrupt)
	}
	return f.packet(r, uint32(f.order.Uint16(b)), b, p)
}

// packet takes what the two kinds of packet block have in common, from byte 4 on.
func (f *pcapng) packet(r *Reader, id uint32, b []byte, p *Packet) error {
	if uint64(id) >= uint64(len(f.interfaces)) {
		return r.fail(ErrCorrupt, fmt.Sprintf("a packet names interface %d of %d", id, len(f.interfaces)), adviceCorrupt)
	}
	n := f.order.Uint32(b[12:])
	if uint64(n) > uint64(len(b)-20) {
		return r.fail(ErrCorrupt, fmt.Sprintf("a packet claims %d captured bytes in a block of %d", n, len(b)-20), adviceCorrupt)
	}
	i := &f.interfaces[id]
	p.Time = i.time(uint64(f.order.Uint32(b[4:]))<<32 | uint64(f.order.Uint32(b[8:])))
	p.Link, p.Interface, p.Data, p.Len = i.link, int(id), b[20:20+n], int(f.order.Uint32(b[16:]))
	return nil
}

// simple takes a packet block without a time and with an implied interface.
func (f *pcapng) simple(r *Reader, b []byte, p *Packet) error {
	if len(f.interfaces) == 0 || len(b) < 4 {
		return r.fail(ErrCorrupt, "a simple packet block without interface or length", adviceCorrupt)
	}
	i := &f.interfaces[0]
	wire := f.order.Uint32(b)
	n := min(uint64(wire), uint64(len(b)-4))
	if i.snapLen != 0 {
		n = min(n, uint64(i.snapLen))
	}
	p.Time, p.Link, p.Interface, p.Data, p.Len = time.Time{}, i.link, 0, b[4:4+n], int(wire)
	return nil
}

// time turns a time stamp into a time.
func (i *ngInterface) time(ts uint64) time.Time {
	var sec, nano uint64
	switch n := i.tsresol & 0x7F; {
	case i.tsresol&0x80 != 0 && n < 64:
		sec = ts >> n
		hi, lo := bits.Mul64(ts-sec<<n, uint64(time.Second)) // below 2^n · 10^9
		nano = lo>>n | hi<<(64-n)
	case i.tsresol&0x80 != 0:
		hi, _ := bits.Mul64(ts, uint64(time.Second))
		nano = hi >> min(n-64, 63)
	case n <= 9:
		unit := pow10(9 - n)
		sec = ts / (uint64(time.Second) / unit)
		nano = ts % (uint64(time.Second) / unit) * unit
	case n <= 28:
		fine := ts / pow10(n-9) // nanoseconds
		sec, nano = fine/uint64(time.Second), fine%uint64(time.Second)
	}
	return time.Unix(int64(sec)+i.offset, int64(nano)).UTC()
}

func pow10(n uint8) uint64 {
	v := uint64(1)
	for range n {
		v *= 10
	}
	return v
}
