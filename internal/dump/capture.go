package dump

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gohixl/hixl/roce"
)

// What an error of a capture unwraps to.
var (
	// ErrNotCapture: the file is neither pcap nor pcapng.
	ErrNotCapture = errors.New("not a packet capture")
	// ErrCutOff: the file ends inside a packet.
	ErrCutOff = errors.New("capture is cut off")
	// ErrCorrupt: lengths in the file contradict each other.
	ErrCorrupt = errors.New("capture is corrupt")
)

// CaptureError says what is wrong with a capture, where, and what to do. It
// unwraps to [ErrNotCapture], [ErrCutOff] or [ErrCorrupt].
type CaptureError struct {
	Reason  error  // the sentinel
	Detail  string // what was found
	Advice  string // what to do
	Offset  int64  // where in the file
	Packets uint64 // how many packets were read before
}

func (e *CaptureError) Error() string {
	return fmt.Sprintf("%v at byte %d, after %d packets: %s; %s", e.Reason, e.Offset, e.Packets, e.Detail, e.Advice)
}

// Unwrap returns the sentinel.
func (e *CaptureError) Unwrap() error { return e.Reason }

// Packet is one packet of a capture. Data belongs to the Reader and is good
// until its next call.
type Packet struct {
	Time      time.Time
	Link      roce.LinkType
	Interface int    // number of the interface within the file; 0 in pcap
	Data      []byte // as much as was captured
	Len       int    // bytes on the wire, at least len(Data) unless the file is odd
}

const (
	readBuffer = 1 << 16
	// maxRecord bounds a packet or block: what libpcap takes as the largest pcapng block.
	maxRecord = 16 << 20
)

// Reader reads a capture. Make one with [NewReader].
type Reader struct {
	in      *bufio.Reader
	format  format
	offset  int64
	packets uint64
	buf     []byte // the record or block at hand
}

// format is a container's way to find the next packet. next returns io.EOF
// where the file may end.
type format interface {
	next(r *Reader, p *Packet) error
	nanoseconds() bool
}

// NewReader looks at the first bytes of in and returns a reader for pcap (micro-
// and nanoseconds) or pcapng, either byte order. Other input is a
// *[CaptureError]; errors of in are returned wrapped.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(in, readBuffer)}
	magic, err := r.in.Peek(4)
	switch {
	case len(magic) < 4 && (err == nil || errors.Is(err, io.EOF)):
		return nil, r.fail(ErrNotCapture, fmt.Sprintf("the file has only %d bytes", len(magic)), adviceCapture)
	case err != nil:
		return nil, fmt.Errorf("reading the capture: %w", err)
	case bytes.Equal(magic, []byte{0x0A, 0x0D, 0x0D, 0x0A}):
		r.format = new(pcapng)
		return r, nil
	case magic[0] == 0x1F && magic[1] == 0x8B:
		return nil, r.fail(ErrNotCapture, "the file is compressed with gzip", "pipe it in: zcat FILE | hixl dump -")
	}
	f, err := newPcap(r, [4]byte(magic))
	if err != nil {
		return nil, err
	}
	r.format = f
	return r, nil
}

const (
	adviceCapture = "give a pcap or pcapng file, as tcpdump -w and Wireshark write"
	adviceCut     = "what came before was read; capture again, or stop the writer first"
	adviceCorrupt = "what came before was read; capture again, or repair the file with a capture tool"
)

// Next fills p with the next packet, or returns io.EOF at the end, a
// *[CaptureError], or an error of the input.
func (r *Reader) Next(p *Packet) error {
	err := r.format.next(r, p)
	if err == nil {
		r.packets++
	}
	return err
}

// Nanoseconds reports whether times may be finer than a microsecond.
func (r *Reader) Nanoseconds() bool { return r.format.nanoseconds() }

// Buffered returns the bytes that can be had without reading the input.
func (r *Reader) Buffered() int { return r.in.Buffered() }

func (r *Reader) fail(reason error, detail, advice string) error {
	return &CaptureError{Reason: reason, Detail: detail, Advice: advice, Offset: r.offset, Packets: r.packets}
}

// take reads n bytes into the reader's buffer. At the end of the input it
// returns io.EOF when there was not one byte, and ErrCutOff when there were some.
func (r *Reader) take(n int) ([]byte, error) {
	r.buf = r.buf[:0]
	return r.more(n)
}

// more reads n bytes behind those already in the buffer and returns them all.
func (r *Reader) more(n int) ([]byte, error) {
	at, start := r.offset, len(r.buf)
	for want := start + n; len(r.buf) < want; {
		have := len(r.buf)
		step := min(want-have, readBuffer) // grow as bytes come, whatever n says
		if cap(r.buf)-have < step {
			r.buf = append(r.buf, make([]byte, step)...)
		}
		r.buf = r.buf[:have+step]
		got, err := io.ReadFull(r.in, r.buf[have:])
		r.offset += int64(got)
		switch {
		case err == nil:
		case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("reading the capture: %w", err)
		case have+got == 0:
			return nil, io.EOF
		default:
			detail := fmt.Sprintf("the file ends %d bytes short", want-have-got)
			return nil, &CaptureError{Reason: ErrCutOff, Detail: detail, Advice: adviceCut, Offset: at, Packets: r.packets}
		}
	}
	return r.buf, nil
}

// linkType keeps what fits; no link layer we know has a larger number.
func linkType(v uint32) roce.LinkType {
	if v > 0xFFFF {
		return 0xFFFF
	}
	return roce.LinkType(v)
}

// byteOrder is what both containers need of an order.
type byteOrder = binary.ByteOrder
