package dsync

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/syncproto"
)

// The limits of a value: bytes of data, and writers.
const (
	MaxValue   = 1 << 30
	MaxWriters = 1 << 15
)

// A value's words, after its header: how many bytes it has at most, how many writers,
// and the word that says which slot is the current one. Slots begin at slotsAt: a
// token and the length of the data, little-endian, and the data.
const (
	capacityAt = 1 * wordSize
	writersAt  = 2 * wordSize
	currentAt  = 3 * wordSize
	slotsAt    = 64
	slotHead   = 2 * wordSize
)

// shape is what a value's users agree about.
type shape struct{ capacity, writers uint64 }

func (s shape) check() error {
	if s.capacity > MaxValue || s.writers < 1 || s.writers > MaxWriters {
		return fmt.Errorf("%w: %d bytes by %d writers, allowed: up to %d, by 1 to %d", ErrLayout, s.capacity, s.writers, MaxValue, MaxWriters)
	}
	return nil
}

func (s shape) slot() uint64 { return slotHead + (s.capacity+wordSize-1)/wordSize*wordSize }

func (s shape) config() syncproto.ValueConfig {
	return syncproto.ValueConfig{Off: currentAt, Slots: slotsAt, SlotSize: s.slot()}
}

// ValueSize returns how many bytes of a region a value takes, at a multiple of 8, that
// has up to capacity bytes and so many writers.
func ValueSize(capacity, writers uint64) uint64 {
	return slotsAt + 2*writers*shape{capacity, writers}.slot()
}

// InitValue lays out a value of version 0 at its home, for up to capacity bytes (at most
// [MaxValue]) and 1 to [MaxWriters] writers. The error is an *[Error] that unwraps to
// [ErrLayout], or to [ErrTooLarge] if data does not fit.
func InitValue(r *hixl.Region, off, capacity, writers uint64, data []byte) error {
	s := shape{capacity, writers}
	err := s.check()
	if err == nil && uint64(len(data)) > capacity {
		err = tooLarge(len(data), capacity)
	}
	if err != nil {
		return &Error{Object: valueKind.String(), Op: "init", Off: off, Err: err}
	}
	if err := valueKind.lay(r, off, ValueSize(capacity, writers), capacity, writers); err != nil {
		return err
	}
	fill(r.Bytes()[off+slotsAt:], 0, data)
	return nil
}

func tooLarge(n int, capacity uint64) error {
	return fmt.Errorf("%w: %d bytes, allowed: %d", ErrTooLarge, n, capacity)
}

// fill makes a slot.
func fill(slot []byte, token uint64, data []byte) {
	binary.LittleEndian.PutUint64(slot, token)
	binary.LittleEndian.PutUint64(slot[wordSize:], uint64(len(data)))
	copy(slot[slotHead:], data)
}

// openValue checks that it is there, and makes local memory for a slot and extra bytes.
func (p *place) openValue(ctx context.Context, extra uint64) (s shape, err error) {
	if err = p.openWords(ctx, &s.capacity, &s.writers); err != nil {
		return s, err
	}
	if err = s.check(); err != nil {
		return s, err
	}
	if err = p.within(ValueSize(s.capacity, s.writers)); err != nil {
		return s, err
	}
	return s, p.alloc(ctx, s.slot()+extra)
}

// ValueReader reads a versioned value. It is used by one goroutine at a time.
type ValueReader struct {
	place
	shape shape
	m     syncproto.Fetch
}

// OpenValueReader makes a handle to read the value at an offset of a peer's region.
// Close gives its memory back. The error is an *[Error] that unwraps to [ErrLayout], or
// to that of the transfer.
func OpenValueReader(ctx context.Context, r *hixl.RemoteRegion, off uint64) (*ValueReader, error) {
	v := &ValueReader{place: place{kind: valueKind, r: r, off: off}}
	s, err := v.openValue(ctx, 0)
	if err != nil {
		return nil, v.fail("open", err)
	}
	v.shape, v.m = s, syncproto.NewFetch(s.config())
	return v, nil
}

// Load returns the value, whole, and its version. The bytes are the handle's until the
// next Load or Close. The error is an *[Error].
func (v *ValueReader) Load(ctx context.Context) (data []byte, version uint64, err error) {
	v.m.Begin()
	if err := v.run(ctx, &v.m); err != nil {
		return nil, 0, v.fail("load", err)
	}
	slot := v.local.Bytes()
	n := binary.LittleEndian.Uint64(slot[wordSize:])
	if n > v.shape.capacity {
		return nil, 0, v.fail("load", fmt.Errorf("%w: it says that it has %d bytes", ErrLayout, n))
	}
	return slot[slotHead:][:n], v.m.Version(), nil
}

// Close gives the handle's memory back.
func (v *ValueReader) Close() error { return v.local.Deregister(context.Background()) }

// ValueWriter writes a versioned value. Its methods may be called from any goroutine.
type ValueWriter struct {
	place
	shape shape
	mu    sync.Mutex
	m     syncproto.Publish
	loose *hixl.Handle // was given up, and may land yet
}

// OpenValueWriter makes a handle to write the value at an offset of a peer's region as
// writer number, from 0 to one less than its writers. No two may be the same writer at
// a time; another can be when the home has ended the connection of the one before.
// Close gives its memory back. The error is an *[Error] that unwraps to [ErrLayout], or
// to that of the transfer.
func OpenValueWriter(ctx context.Context, r *hixl.RemoteRegion, off, number uint64) (*ValueWriter, error) {
	v := &ValueWriter{place: place{kind: valueKind, r: r, off: off}}
	s, err := v.openValue(ctx, wordSize)
	if err == nil && number >= s.writers {
		err = fmt.Errorf("%w: it has %d writers, the first being 0: there is no %d", ErrLayout, s.writers, number)
	}
	if err != nil {
		if v.local != nil {
			_ = v.Close()
		}
		return nil, v.fail("open", err)
	}
	v.shape, v.m = s, syncproto.NewPublish(s.config(), number)
	return v, nil
}

// Store replaces the value and returns its version, which is greater than that of
// every earlier one. token is 0, or the fencing token of the lock that protects the
// value: when a greater one was stored before, the error unwraps to [ErrFenced]. It is
// an *[Error]; it unwraps to [ErrUncertain] when the value may have been there before
// others replaced it, and to [ErrTooLarge].
func (v *ValueWriter) Store(ctx context.Context, token uint64, data []byte) (version uint64, err error) {
	return v.publish(ctx, "store", token, false, 0, data)
}

// StoreIf is Store if the value has a version; otherwise it returns that which it has,
// and the error unwraps to [ErrConflict].
func (v *ValueWriter) StoreIf(ctx context.Context, version, token uint64, data []byte) (uint64, error) {
	return v.publish(ctx, "store", token, true, version, data)
}

func (v *ValueWriter) publish(ctx context.Context, op string, token uint64, only bool, version uint64, data []byte) (uint64, error) {
	if uint64(len(data)) > v.shape.capacity {
		return 0, v.fail(op, tooLarge(len(data), v.shape.capacity))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.loose != nil {
		if err := v.loose.WaitFenced(ctx); err != nil {
			return 0, v.fail(op, err)
		}
		v.loose = nil
	}
	fill(v.local.Bytes(), token, data)
	v.m.Begin(token, only, version)
	err := v.run(ctx, &v.m)
	if t := (*hixl.TransferError)(nil); errors.As(err, &t) && !t.Fenced {
		v.loose = t.Handle
	}
	switch {
	case err != nil:
	case v.m.Fenced():
		err = ErrFenced
	case v.m.Conflict():
		err = ErrConflict
	case v.m.Uncertain():
		err = ErrUncertain
	}
	return v.m.Version(), v.fail(op, err)
}

// Close gives the handle's memory back.
func (v *ValueWriter) Close() error { return v.local.Deregister(context.Background()) }
