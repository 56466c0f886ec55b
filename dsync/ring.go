package dsync

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/syncproto"
)

// The limits of a ring: records, and bytes of one.
const (
	MaxRingSlots  = 1 << 20
	MaxRingRecord = 1 << 26
)

// A ring's words, after its header: how many slots it has, of how many bytes of data;
// the producer's word and the consumer's.
// Slots begin at recordsAt: the producer's word when it wrote the record, the length
// and the checksum of the data, little-endian, and the data.
const (
	ringAt    = 3 * wordSize
	recordsAt = 64
	recordHd  = 2 * wordSize
)

// ringShape is what both ends agree about.
type ringShape struct{ slots, record uint64 }

func (s ringShape) check() error {
	if s.slots < 1 || s.slots > MaxRingSlots || s.record > MaxRingRecord {
		return fmt.Errorf("%w: %d slots of %d bytes, allowed: 1 to %d, of up to %d", ErrLayout, s.slots, s.record, MaxRingSlots, MaxRingRecord)
	}
	return nil
}

func (s ringShape) slot() uint64 { return recordHd + (s.record+wordSize-1)/wordSize*wordSize }

func (s ringShape) config() syncproto.RingConfig {
	return syncproto.RingConfig{
		Off: ringAt, Slots: recordsAt, SlotSize: s.slot(), Count: s.slots, Batch: max(s.slots/4, 1), MinPause: 20 * time.Microsecond, MaxPause: 2 * time.Millisecond,
	}
}

// RingSize returns how many bytes of a region a ring takes, at a multiple of 8, that
// has so many slots for records of up to so many bytes.
func RingSize(slots, record uint64) uint64 {
	return recordsAt + slots*ringShape{slots, record}.slot()
}

// InitRing lays out an empty ring at its home, best that of the consumer, of 1 to
// [MaxRingSlots] slots for records of up to record bytes (at most [MaxRingRecord]).
// The error is an *[Error] that unwraps to [ErrLayout].
func InitRing(r *hixl.Region, off, slots, record uint64) error {
	s := ringShape{slots, record}
	if err := s.check(); err != nil {
		return &Error{Object: ringKind.String(), Op: "init", Off: off, Err: err}
	}
	return ringKind.lay(r, off, RingSize(slots, record), slots, record)
}

func (p *place) openRing(ctx context.Context) (s ringShape, err error) {
	if err = p.openWords(ctx, &s.slots, &s.record); err != nil {
		return s, err
	}
	if err = s.check(); err != nil {
		return s, err
	}
	if err = p.within(RingSize(s.slots, s.record)); err != nil {
		return s, err
	}
	return s, p.alloc(ctx, s.slot())
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// RingProducer puts records into a ring. Its methods may be called from any goroutine.
type RingProducer struct {
	place
	shape ringShape
	mu    sync.Mutex // held while an operation is at work
	m     syncproto.Produce
	other uint64       // term of the consumer last seen, 0 none
	loose *hixl.Handle // was given up, and may land yet
}

// OpenRingProducer becomes the producer of the ring at an offset of a peer's region. It
// takes over from whoever was before, whose calls fail with [ErrFenced] from now on, and
// who must be gone: its writes must have ended, as they have when the home has ended
// its connection. Close gives its memory back. The error is an *[Error] that unwraps
// to [ErrLayout], or to that of the transfer.
func OpenRingProducer(ctx context.Context, r *hixl.RemoteRegion, off uint64) (*RingProducer, error) {
	p := &RingProducer{place: place{kind: ringKind, r: r, off: off}}
	s, err := p.openRing(ctx)
	if err != nil {
		return nil, p.fail("open", err)
	}
	p.shape, p.m = s, syncproto.NewProduce(s.config())
	p.m.Open()
	if err := p.work(ctx); err != nil {
		_ = p.Close()
		return nil, p.fail("open", err)
	}
	p.other = syncproto.TermOf(p.m.Other())
	return p, nil
}

func (p *RingProducer) work(ctx context.Context) error {
	return ended(p.run(ctx, &p.m), p.m.Fenced(), p.m.Strange())
}

// ended is how an end's operation came out.
func ended(err error, fenced, strange bool) error {
	switch {
	case err != nil:
		return err
	case fenced:
		return ErrFenced
	case strange:
		return errStrange
	}
	return nil
}

// Send puts a record in, waits for room if there is none, and returns the record's
// number, counted from 0 over all producers. data is copied before it returns.
//
// The error is an *[Error]. It unwraps to [ErrRestarted], once, when it was seen that
// another consumer has taken over: nothing was put in. It unwraps to [ErrUncertain] when the record
// may be in the ring: the next Send puts it in for certain, before its own. After any
// other it is not in the ring. [ErrFenced]: another producer has taken over.
func (p *RingProducer) Send(ctx context.Context, data []byte) (seq uint64, err error) {
	if uint64(len(data)) > p.shape.record {
		return 0, p.fail("send", tooLarge(len(data), p.shape.record))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loose != nil {
		if err := p.loose.WaitFenced(ctx); err != nil {
			return 0, p.fail("send", err)
		}
		p.loose = nil
	}
	if term := syncproto.TermOf(p.m.Other()); term != p.other {
		was := p.other
		if p.other = term; was != 0 {
			return 0, p.fail("send", ErrRestarted)
		}
	}
	p.m.Begin()
	seq = p.m.Seq()
	p.fill(seq, data)
	err = p.work(ctx)
	if t := (*hixl.TransferError)(nil); errors.As(err, &t) && !t.Fenced {
		p.loose = t.Handle
	}
	if err != nil && p.m.Doubtful() {
		err = fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return seq, p.fail("send", err)
}

// fill makes the record.
func (p *RingProducer) fill(seq uint64, data []byte) {
	b := p.local.Bytes()
	binary.LittleEndian.PutUint64(b, p.m.Stamp(seq))
	binary.LittleEndian.PutUint64(b[wordSize:], uint64(len(data))|uint64(crc32.Checksum(data, castagnoli))<<32)
	copy(b[recordHd:], data)
}

// Close gives the handle's memory back. Records that were sent stay.
func (p *RingProducer) Close() error { return p.local.Deregister(context.Background()) }

// RingConsumer takes records out of a ring. It is used by one goroutine at a time.
type RingConsumer struct {
	place
	shape ringShape
	m     syncproto.Consume
	held  bool   // a record was read and not returned
	term  uint64 // of the last record's producer, 0 none
}

// OpenRingConsumer becomes the consumer of the ring at an offset of a peer's region. It
// takes over from whoever was before, whose calls fail with [ErrFenced] from now on,
// and begins with the oldest record that has not been committed. Close gives its memory
// back. The error is an *[Error] that unwraps to [ErrLayout], or to that of the
// transfer.
func OpenRingConsumer(ctx context.Context, r *hixl.RemoteRegion, off uint64) (*RingConsumer, error) {
	c := &RingConsumer{place: place{kind: ringKind, r: r, off: off}}
	s, err := c.openRing(ctx)
	if err != nil {
		return nil, c.fail("open", err)
	}
	c.shape, c.m = s, syncproto.NewConsume(s.config())
	c.m.Open()
	if err := c.work(ctx); err != nil {
		_ = c.Close()
		return nil, c.fail("open", err)
	}
	return c, nil
}

func (c *RingConsumer) work(ctx context.Context) error {
	return ended(c.run(ctx, &c.m), c.m.Fenced(), c.m.Strange())
}

// Recv waits for the next record and returns it, whole, and its number, counted from 0.
// The bytes are the handle's until the next call. Records are committed, so that the
// producer has their room again, a quarter of the ring at a time and before Recv waits;
// a consumer that takes over gets what was not committed again.
//
// The error is an *[Error]. It unwraps to [ErrRestarted], once, when the next record is
// of another producer than the one before, and to [ErrFenced] when another consumer has
// taken over.
func (c *RingConsumer) Recv(ctx context.Context) (data []byte, seq uint64, err error) {
	if !c.held {
		c.m.Begin()
		if err := c.work(ctx); err != nil {
			return nil, 0, c.fail("receive", err)
		}
	}
	c.held = false
	slot := c.local.Bytes()
	stamp, head := binary.LittleEndian.Uint64(slot), binary.LittleEndian.Uint64(slot[wordSize:])
	seq = c.m.Seq()
	n := head & (1<<32 - 1)
	if syncproto.CountOf(stamp) != seq || n > c.shape.record || crc32.Checksum(slot[recordHd:][:n], castagnoli) != uint32(head>>32) {
		return nil, seq, c.fail("receive", fmt.Errorf("%w: record %d is not what its producer wrote; were there two?", ErrLayout, seq))
	}
	if term, was := syncproto.TermOf(stamp), c.term; term != was {
		c.term = term
		if was != 0 {
			c.held = true
			return nil, seq, c.fail("receive", fmt.Errorf("%w: from record %d on", ErrRestarted, seq))
		}
	}
	return slot[recordHd:][:n], seq, nil
}

// Commit commits up to the record that Recv has returned last, that one included and all
// before it: the producer has their room again, and no other consumer gets them. There is
// no committing of single ones, nor out of order: finish the work on a record before the
// next Recv, which may commit it as well. After a Recv that has told [ErrRestarted] it
// commits nothing, until the next one has returned. The error is an *[Error]; what was
// not committed then, the next Commit or Recv commits.
func (c *RingConsumer) Commit(ctx context.Context) error {
	if c.held { // one more was taken; the next Recv returns it
		return nil
	}
	c.m.Commit()
	return c.fail("commit", c.work(ctx))
}

// Close gives the handle's memory back. What was not committed, another consumer gets.
func (c *RingConsumer) Close() error { return c.local.Deregister(context.Background()) }
