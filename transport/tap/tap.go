package tap

import (
	"errors"
	"io"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
)

// MaxSnaplen keeps whole frames of any size.
const MaxSnaplen = 1 << 18

// Config sets up a tap. The zero value keeps everything.
type Config struct {
	// Snaplen is how many bytes of each frame are kept; 0, or more than
	// MaxSnaplen, keeps all.
	Snaplen int
	// Clock gives the time of packets; nil means time.Now. It is called once a
	// batch. For a simulated network it should be the virtual time.
	Clock func() time.Time
}

// Tap is a Conn that shows what passes.
type Tap struct {
	transport.Conn // the tapped one
	parts          []transport.Reader
	clock          func() time.Time
	snaplen        int
	local          netip.Addr // set once, as all above

	// mu keeps the packets of the file in the order of events: it is held while
	// the inner Conn sends, so that no answer can be written before its request.
	mu  sync.Mutex
	w   io.Writer
	err error
	buf []byte // blocks to be written
}

var _ transport.Sharded = (*Tap)(nil)

// Wrap puts a tap around c, writing to w until Close. It owns c, which must be
// used through it from now on; w stays the caller's to close, after Close. The
// header of the file is written at once.
func Wrap(c transport.Conn, w io.Writer, cfg Config) *Tap {
	t := &Tap{Conn: c, clock: cfg.Clock, snaplen: cfg.Snaplen, local: c.LocalAddr(), w: w}
	if t.clock == nil {
		t.clock = time.Now
	}
	if t.snaplen <= 0 || t.snaplen > MaxSnaplen {
		t.snaplen = MaxSnaplen
	}
	t.parts = []transport.Reader{t}
	if s, ok := c.(transport.Sharded); ok {
		t.parts = nil
		for _, r := range s.Shards() {
			t.parts = append(t.parts, &part{Reader: r, tap: t})
		}
	}
	t.buf = appendHeader(t.buf, "hixl "+t.local.String(), t.snaplen)
	t.flush()
	return t
}

// Err returns why the capture ended early, or nil.
func (t *Tap) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// ReadBatch reads from the tapped Conn, which tells the TOS of every packet.
func (t *Tap) ReadBatch(b []transport.Rx, wait bool) (int, error) {
	return t.read(t.Conn, b, wait)
}

// Shards returns the parts of the tapped Conn, or one for all of it.
func (t *Tap) Shards() []transport.Reader { return t.parts }

// part is a shard of the tapped Conn.
type part struct {
	transport.Reader
	tap *Tap
}

// ReadBatch reads from the shard.
func (p *part) ReadBatch(b []transport.Rx, wait bool) (int, error) {
	return p.tap.read(p.Reader, b, wait)
}

func (t *Tap) read(from transport.Reader, b []transport.Rx, wait bool) (int, error) {
	if len(b) > 0 {
		b[0].SkipTOS = false
	}
	n, err := from.ReadBatch(b, wait)
	if n > 0 {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.err == nil {
			at := t.clock()
			for i := range b[:n] {
				t.received(&b[i], at)
			}
			t.flush()
		}
	}
	return n, err
}

// WriteBatch writes to the tapped Conn.
func (t *Tap) WriteBatch(b []transport.Tx) (int, error) {
	t.mu.Lock()
	if t.err != nil {
		t.mu.Unlock()
		return t.Conn.WriteBatch(b)
	}
	defer t.mu.Unlock()
	at := t.clock()
	n, err := t.Conn.WriteBatch(b)
	for i := range b[:n] {
		t.sent(&b[i], at)
	}
	t.flush()
	return n, err
}

// Close closes the tapped Conn and ends the capture. The error is that of the
// Conn, joined with what Err says.
func (t *Tap) Close() error {
	err := t.Conn.Close()
	return errors.Join(err, t.Err())
}

func (t *Tap) received(r *transport.Rx, at time.Time) {
	p := packet{src: r.Src, dst: r.Dst, srcPort: r.SrcPort, tos: r.TOS, ttl: r.TTL, frag: roce.DontFragment}
	if p.ttl == 0 {
		p.ttl = knownTTL
	}
	for i := range r.Packets() {
		p.id, p.data = uint16(i), r.Packet(i)
		if r.HaveID {
			p.id, p.frag = r.ID, r.Frag
		}
		t.packet(&p, at, inbound)
	}
}

func (t *Tap) sent(x *transport.Tx, at time.Time) {
	p := packet{
		src: t.local, dst: x.Dst.WithZone(""), srcPort: t.SourcePort(x.SrcPort), tos: x.TOS,
		ttl: knownTTL, frag: roce.DontFragment,
	}
	control := t.Caps().FullIPControl
	for i := range x.Packets() {
		p.id, p.data = uint16(i), x.Packet(i)
		if control && !x.IsTrain() {
			p.id = x.ID
		}
		t.packet(&p, at, outbound)
	}
}

// packet appends one block to buf.
func (t *Tap) packet(p *packet, at time.Time, direction uint32) {
	if !p.src.IsValid() || p.src.Is4() != p.dst.Is4() || len(p.data) > math.MaxUint16-ipv6Len-udpLen {
		return // no carrier delivers such
	}
	size := p.frameLen()
	var start int
	t.buf, start = beginPacket(t.buf, at, size, t.snaplen)
	data := len(t.buf)
	t.buf = p.appendFrame(t.buf)
	t.buf = t.buf[:data+min(size, t.snaplen)]
	t.buf = endPacket(t.buf, start, direction)
}

// flush writes what is in buf, all or nothing as far as the capture goes on.
func (t *Tap) flush() {
	if len(t.buf) > 0 && t.err == nil {
		_, t.err = t.w.Write(t.buf)
	}
	t.buf = t.buf[:0]
}
