package dsync

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/syncproto"
)

// LockSize is how many bytes of a region a lock takes, at a multiple of 8.
const LockSize = 64

// The lease of a lock is between these.
const (
	MinLease = time.Millisecond
	MaxLease = time.Hour
)

// A lock's words, after its header.
const (
	leaseAt = 1 * wordSize
	lockAt  = 2 * wordSize
)

// marginPart is the part of a lease by which a holder stops earlier.
const marginPart = 10

// InitLock lays out a lock that nobody holds, at its home. lease, from [MinLease] to
// [MaxLease], is how long after its holder's last sign of life it can be taken away;
// it should be many times what an operation takes. The error is an *[Error] that
// unwraps to [ErrLayout].
func InitLock(r *hixl.Region, off uint64, lease time.Duration) error {
	if lease < MinLease || lease > MaxLease {
		return &Error{Object: lockKind.String(), Op: "init", Off: off, Err: badLease(lease)}
	}
	return lockKind.lay(r, off, LockSize, uint64(lease))
}

func badLease(lease time.Duration) error {
	return fmt.Errorf("%w: a lease of %v, allowed: %v to %v", ErrLayout, lease, MinLease, MaxLease)
}

// Lock is a lock with a lease. It can be used by many goroutines, among whom it
// excludes as well.
type Lock struct {
	place
	lease time.Duration

	mu    sync.Mutex
	watch syncproto.Lock // of those who only try
}

// OpenLock makes a handle for the lock at an offset of a peer's region. The error is
// an *[Error] that unwraps to [ErrLayout], or to that of the transfer.
func OpenLock(ctx context.Context, r *hixl.RemoteRegion, off uint64) (*Lock, error) {
	l := &Lock{place: place{kind: lockKind, r: r, off: off}}
	if err := l.open(ctx); err != nil {
		return nil, l.fail("open", err)
	}
	lease, err := l.load(ctx, leaseAt)
	if err != nil {
		return nil, l.fail("open", err)
	}
	l.lease = time.Duration(lease)
	if l.lease < MinLease || l.lease > MaxLease {
		return nil, l.fail("open", badLease(l.lease))
	}
	l.watch = syncproto.NewLock(l.config())
	return l, nil
}

func (l *Lock) config() syncproto.LockConfig {
	return syncproto.LockConfig{
		Off: lockAt, Lease: l.lease, Margin: l.lease / marginPart, MinPause: 20 * time.Microsecond, MaxPause: min(l.lease/8, 2*time.Millisecond),
	}
}

// Duration returns the lock's lease.
func (l *Lock) Duration() time.Duration { return l.lease }

// Acquire waits for the lock and takes it. When ctx ends, or the home cannot be
// reached, the caller does not hold it; if that happened while it was being taken,
// nobody does until the lease is over. The error is an *[Error].
func (l *Lock) Acquire(ctx context.Context) (*Lease, error) {
	m := syncproto.NewLock(l.config())
	m.Acquire(false)
	if err := l.run(ctx, &m); err != nil {
		return nil, l.fail("acquire", err)
	}
	return l.held(m), nil
}

// TryAcquire takes the lock unless somebody holds it: then the error unwraps to
// [ErrHeld]. One whose holder is gone is taken by a try that comes at least a lease
// after another, both by this handle, when nothing has happened in between.
func (l *Lock) TryAcquire(ctx context.Context) (*Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch.Acquire(true)
	err := l.run(ctx, &l.watch)
	if err == nil && l.watch.Refused() {
		err = ErrHeld
	}
	if err != nil {
		l.watch.Rest()
		return nil, l.fail("try to acquire", err)
	}
	m := l.watch
	l.watch = syncproto.NewLock(l.config())
	return l.held(m), nil
}

func (l *Lock) held(m syncproto.Lock) *Lease {
	x := &Lease{l: l, token: m.Token(), m: m}
	x.until.Store(int64(m.Until()))
	return x
}

// Lease is a lock that is held, as long as it is renewed in time. All methods may be
// called from any goroutine.
type Lease struct {
	l     *Lock
	token uint64
	until atomic.Int64 // hixl.Time; 0: not held any more

	mu sync.Mutex // held while an operation is at work
	m  syncproto.Lock
}

// Token returns the fencing token: greater than that of every earlier holder. What
// the lock protects refuses one that is lower than the greatest it has seen.
func (x *Lease) Token() uint64 { return x.token }

// Held reports whether the lock is held now. What was begun when it was may end when
// it is not: see Token.
func (x *Lease) Held() bool { return int64(now()) < x.until.Load() }

// Until returns when it will not be held any more, unless it is renewed; the zero
// Time when it was released or lost. It is earlier than the time at which another
// can have the lock.
func (x *Lease) Until() time.Time {
	if t := x.until.Load(); t != 0 {
		return wall(hixl.Time(t))
	}
	return time.Time{}
}

// Renew makes the lease begin anew. The error is an *[Error] that unwraps to
// [ErrLeaseLost] when it is too late; after any other, the lease is as it was.
func (x *Lease) Renew(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.until.Load() == 0 {
		return x.l.fail("renew", ErrLeaseLost)
	}
	x.m.Renew(now())
	err := x.l.run(ctx, &x.m)
	if x.m.Lost() {
		x.until.Store(0)
		return x.l.fail("renew", ErrLeaseLost)
	}
	x.until.Store(int64(x.m.Until()))
	return x.l.fail("renew", err)
}

// Keep renews the lease each third of it until ctx ends, then returns nil; or until it
// is lost or released: then an *[Error] that unwraps to [ErrLeaseLost]. Run it beside
// the work.
func (x *Lease) Keep(ctx context.Context) error {
	for {
		sleep(ctx, x.l.lease/3)
		if ctx.Err() != nil {
			return nil
		}
		if err := x.Renew(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if !x.Held() {
				return x.l.fail("keep", ErrLeaseLost)
			}
		}
	}
}

// Release gives the lock back. What it protects must have come to an end before: wait
// for the transfers, and for their fences. The error is an *[Error] that unwraps to
// [ErrLeaseLost] when another may have had the lock meanwhile; after any other the
// lock is not held, though others may have to wait for the end of the lease.
func (x *Lease) Release(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.until.Swap(0) == 0 {
		return x.l.fail("release", ErrLeaseLost)
	}
	x.m.Release()
	err := x.l.run(ctx, &x.m)
	if x.m.Lost() {
		err = ErrLeaseLost
	}
	return x.l.fail("release", err)
}
