package tools

import (
	"context"
	"time"

	"github.com/gohixl/hixl"
)

// Bounds of how often a watch looks.
const (
	minLook = 5 * time.Millisecond
	maxLook = time.Second
)

// Watch returns a context that ends, with [ErrSilent] as its cause, once
// progress has returned the same number for patience. The function ends the
// watch and must be called. progress is called from a goroutine of the watch.
func Watch(ctx context.Context, patience time.Duration, progress func() uint64) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if !quiet(ctx, patience, progress) {
			return
		}
		cancel(ErrSilent)
	}()
	return ctx, func() { cancel(nil); <-done }
}

// Linger waits until nothing at all has come for a while, or ctx ends: the time in
// which a peer whose last ACK was lost asks for it again.
func Linger(ctx context.Context, while time.Duration, n *hixl.NIC) {
	quiet(ctx, while, func() uint64 { return n.Stats().RxPackets })
}

// quiet reports whether progress stood still for a while before ctx ended.
func quiet(ctx context.Context, while time.Duration, progress func() uint64) bool {
	look := time.NewTicker(min(max(while/8, minLook), maxLook))
	defer look.Stop()
	last, since := progress(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return false
		case now := <-look.C:
			if p := progress(); p != last {
				last, since = p, now
			} else if now.Sub(since) >= while {
				return true
			}
		}
	}
}

// Cause returns why ctx ended, and err when it has not.
func Cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}
