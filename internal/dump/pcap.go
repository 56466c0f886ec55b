package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gohixl/hixl/roce"
)

// pcap is the classic container: a header, then records.
type pcap struct {
	order byteOrder
	nano  bool
	link  roce.LinkType
}

const (
	pcapHeaderLen = 24
	pcapRecordLen = 16

	pcapMicro = 0xA1B2C3D4
	pcapNano  = 0xA1B23C4D
)

func newPcap(r *Reader, magic [4]byte) (*pcap, error) {
	var f pcap
	switch {
	case f.magic(binary.LittleEndian, magic):
	case f.magic(binary.BigEndian, magic):
	default:
		return nil, r.fail(ErrNotCapture, fmt.Sprintf("the file begins with % x", magic), adviceCapture)
	}
	h, err := r.take(pcapHeaderLen)
	if err != nil {
		return nil, err
	}
	f.link = linkType(f.order.Uint32(h[20:]) & 0x03FFFFFF) // above it: length of the FCS
	return &f, nil
}

func (f *pcap) magic(order byteOrder, magic [4]byte) bool {
	v := order.Uint32(magic[:])
	f.order, f.nano = order, v == pcapNano
	return v == pcapMicro || v == pcapNano
}

func (f *pcap) nanoseconds() bool { return f.nano }

func (f *pcap) next(r *Reader, p *Packet) error {
	h, err := r.take(pcapRecordLen)
	if err != nil {
		return err
	}
	sec, frac := int64(f.order.Uint32(h)), int64(f.order.Uint32(h[4:]))
	n, wire := f.order.Uint32(h[8:]), f.order.Uint32(h[12:])
	if n > maxRecord {
		return r.fail(ErrCorrupt, fmt.Sprintf("a packet claims %d captured bytes", n), adviceCorrupt)
	}
	if !f.nano {
		frac *= 1000
	}
	p.Time, p.Link, p.Interface, p.Len = time.Unix(sec, frac).UTC(), f.link, 0, int(wire)
	p.Data, err = r.take(int(n))
	if errors.Is(err, io.EOF) { // the header was there, the packet is not
		return r.fail(ErrCutOff, fmt.Sprintf("the file ends %d bytes short", n), adviceCut)
	}
	return err
}
