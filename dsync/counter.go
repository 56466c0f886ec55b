package dsync

import (
	"context"
	"errors"
	"fmt"

	"github.com/gohixl/hixl"
)

// CounterSize is how many bytes of a region a counter takes, at a multiple of 8.
const CounterSize = 64

const countAt = 1 * wordSize

// InitCounter lays out a counter with a value, at its home. The error is an *[Error]
// that unwraps to [ErrLayout].
func InitCounter(r *hixl.Region, off, value uint64) error {
	return counterKind.lay(r, off, CounterSize, value)
}

// Counter is a number of 64 bits that many add to. It can be used by many
// goroutines.
type Counter struct{ place }

// OpenCounter makes a handle for the counter at an offset of a peer's region. The
// error is an *[Error] that unwraps to [ErrLayout], or to that of the transfer.
func OpenCounter(ctx context.Context, r *hixl.RemoteRegion, off uint64) (*Counter, error) {
	c := &Counter{place{kind: counterKind, r: r, off: off}}
	if err := c.open(ctx); err != nil {
		return nil, c.fail("open", err)
	}
	return c, nil
}

// Add adds delta, modulo 2^64, and returns what the value was: a number that no other
// Add of 1 gets. The error is an *[Error]; it unwraps to [ErrUncertain] when delta may
// have been added.
func (c *Counter) Add(ctx context.Context, delta uint64) (before uint64, err error) {
	for n := 0; ; n++ {
		before, err = c.r.Peer().FetchAdd(ctx, c.r, c.off+countAt, delta)
		if t := (*hixl.TransferError)(nil); errors.As(err, &t) && t.Executed && delta != 0 {
			return 0, c.fail("add", fmt.Errorf("%w: %w", ErrUncertain, err))
		}
		if err == nil || !patient(ctx, n, err) {
			return before, c.fail("add", err)
		}
	}
}

// Load returns the value.
func (c *Counter) Load(ctx context.Context) (uint64, error) {
	v, err := c.load(ctx, countAt)
	return v, c.fail("load", err)
}
