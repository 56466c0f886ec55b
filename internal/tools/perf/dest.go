package perf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// dest is what one end tells about one of its queue pairs.
type dest struct {
	outs int // READs and atomics it serves at a time
	qpn  uint32
	psn  uint32
	rkey uint32
	addr uint64
	gid  [16]byte
	srqn uint32 // of no meaning to RC, UC and UD: see mark
}

// Lengths of its two forms.
const (
	lineLen   = 108 // text, NUL included
	structLen = 56
)

// A number in the SRQ field tells the peer that this end is of this package and
// what its data looks like. The original leaves the field 0 and ignores it.
const (
	markMask = 0xffff0000
	mark     = 0x48580000
)

// seed returns what the data of an end looks like, if it is one of this package.
func (d *dest) seed() (uint32, bool) {
	return d.srqn, d.srqn&markMask == mark
}

// line is the text form, for TCP.
func (d *dest) line() []byte {
	b := fmt.Appendf(make([]byte, 0, lineLen), "%04x:%04x:%06x:%06x:%08x:%016x:", 0, d.outs, d.qpn, d.psn, d.rkey, d.addr)
	for _, g := range d.gid {
		b = fmt.Appendf(b, "%02x:", g)
	}
	return append(fmt.Appendf(b, "%08x:", d.srqn), 0)
}

// lineFields are the widths of its fields.
var lineFields = [...]int{4, 4, 6, 6, 8, 16, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 8}

// parseLine reads a line of exactly lineLen bytes.
func parseLine(b []byte) (d dest, err error) {
	text, ok := bytes.CutSuffix(b, []byte{':', 0})
	f := bytes.Split(text, []byte(":"))
	if len(b) != lineLen || !ok || len(f) != len(lineFields) {
		return d, fmt.Errorf("%q is no address line", b)
	}
	var v [len(lineFields)]uint64
	for i, w := range lineFields {
		n, err := strconv.ParseUint(string(f[i]), 16, 4*w)
		if err != nil || len(f[i]) != w {
			return d, fmt.Errorf("%q: field %d is no number of %d hex digits", b, i, w)
		}
		v[i] = n
	}
	d = dest{outs: int(v[1]), qpn: uint32(v[2]), psn: uint32(v[3]), rkey: uint32(v[4]), addr: v[5], srqn: uint32(v[22])}
	for i := range d.gid {
		d.gid[i] = byte(v[6+i])
	}
	return d, nil
}

// bytes is the binary form, for SENDs.
func (d *dest) bytes() []byte {
	b := make([]byte, structLen)
	binary.BigEndian.PutUint32(b[4:], uint32(d.outs))
	binary.BigEndian.PutUint32(b[8:], d.qpn)
	binary.BigEndian.PutUint32(b[12:], d.psn)
	binary.BigEndian.PutUint32(b[16:], d.rkey)
	binary.BigEndian.PutUint64(b[24:], d.addr)
	copy(b[32:], d.gid[:])
	binary.BigEndian.PutUint32(b[48:], d.srqn)
	return b
}

// parseStruct reads the binary form of exactly structLen bytes.
func parseStruct(b []byte) (d dest, err error) {
	if len(b) != structLen {
		return d, fmt.Errorf("%d bytes are no address structure of %d", len(b), structLen)
	}
	d = dest{
		outs: int(binary.BigEndian.Uint32(b[4:])), qpn: binary.BigEndian.Uint32(b[8:]), psn: binary.BigEndian.Uint32(b[12:]),
		rkey: binary.BigEndian.Uint32(b[16:]), addr: binary.BigEndian.Uint64(b[24:]), srqn: binary.BigEndian.Uint32(b[48:]),
	}
	copy(d.gid[:], b[32:])
	if d.qpn>>24 != 0 || d.psn>>24 != 0 || d.outs>>16 != 0 {
		return d, errors.New("an address structure with numbers that are none: " + fmt.Sprintf("%x", b))
	}
	return d, nil
}
