package dsync

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/syncproto"
)

const (
	wordSize = 8
	// magic is how the first word of an object begins; its kind and the version of
	// the layout follow.
	magic = uint64(0x6864_7379_6e63_0000)
)

type kind uint8

const (
	counterKind kind = iota + 1
	lockKind
	valueKind
	barrierKind
	ringKind
)

func (k kind) String() string {
	return [...]string{"object", "counter", "lock", "value", "barrier", "ring"}[k]
}

func (k kind) header() uint64 { return magic | uint64(k)<<8 | 1 }

// lay writes an object's words after its header, zeroes up to its size.
func (k kind) lay(r *hixl.Region, off, size uint64, words ...uint64) error {
	fail := func(format string, args ...any) error {
		return &Error{Object: k.String(), Op: "init", Off: off, Err: fmt.Errorf("%w: "+format, append([]any{ErrLayout}, args...)...)}
	}
	switch b := r.Bytes(); {
	case b == nil:
		return fail("it lies in host memory")
	case off > r.Len() || size > r.Len()-off:
		return fail("it takes %d bytes, and the region has %d", size, r.Len())
	case (r.Addr()+off)%wordSize != 0:
		return fail("its address must be a multiple of %d", wordSize)
	case r.Access()&hixl.RemoteAtomic == 0:
		return fail("its region needs RemoteAtomic")
	default:
		b = b[off : off+size]
		clear(b)
		for i, w := range words {
			binary.NativeEndian.PutUint64(b[wordSize*(i+1):], w)
		}
		binary.NativeEndian.PutUint64(b, k.header())
		return nil
	}
}

// place is where an object lies, for those who use it.
type place struct {
	kind  kind
	r     *hixl.RemoteRegion
	off   uint64
	local *hixl.Region // what reads bring and writes take, if it has any
}

// fail is an operation on it that failed, nil if it did not.
func (p *place) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Object: p.kind.String(), Op: op, Peer: p.r.Peer().Address(), Region: p.r.Name(), Off: p.off, Err: err}
}

// openWords checks that it is there, and takes the first words after its header.
func (p *place) openWords(ctx context.Context, words ...*uint64) error {
	if err := p.open(ctx); err != nil {
		return err
	}
	for i, w := range words {
		var err error
		if *w, err = p.load(ctx, wordSize*uint64(i+1)); err != nil {
			return err
		}
	}
	return nil
}

// alloc makes local memory, and makes sure with it that the home's byte order is that
// in which reads and writes carry words.
func (p *place) alloc(ctx context.Context, size uint64) error {
	local, err := p.r.Peer().Context().Alloc(int(size), hixl.LocalWrite)
	if err != nil {
		return err
	}
	p.local = local
	for n := 0; ; n++ {
		r, err := p.do(ctx, syncproto.Op{Kind: syncproto.Read, Len: wordSize})
		switch {
		case err == nil && r.Word != p.kind.header():
			err = fmt.Errorf("%w: its home is a machine of another byte order", ErrLayout)
		case err != nil && patient(ctx, n, err):
			continue
		}
		if err != nil {
			_ = local.Deregister(context.WithoutCancel(ctx))
		}
		return err
	}
}

// within checks that so many bytes of it lie in its region.
func (p *place) within(size uint64) error {
	if n := p.r.Len(); p.off > n || size > n-p.off {
		return fmt.Errorf("%w: it goes beyond the end of its region", ErrLayout)
	}
	return nil
}

// open checks that it is there.
func (p *place) open(ctx context.Context) error {
	switch w, err := p.load(ctx, 0); {
	case err != nil:
		return err
	case w != p.kind.header():
		return fmt.Errorf("%w: there is no %v, or one of another version", ErrLayout, p.kind)
	}
	return nil
}
