package bench

import (
	"errors"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// A ring's memory: its counters on cache lines of their own, then the bytes.
const (
	ringHead  = 0
	ringTail  = 128
	ringEnded = 256
	ringData  = 4096
	// ringBytes stays within a usual L2 cache, so that both copies find what the
	// other just wrote.
	ringBytes = 1 << 20
	ringSize  = ringData + ringBytes
	// ringPiece is how much is copied before the other side hears of it.
	ringPiece = 32 << 10
)

// errRing is a ring whose other side writes nonsense, or has left.
var errRing = errors.New("shm baseline: the ring's counters cannot be")

// ring is a queue of bytes in shared memory with one writer and one reader, each
// of which waits spinning. What it holds of the counters is its own side's view.
type ring struct {
	head, tail *atomic.Uint64 // bytes written and bytes read so far
	ended      *atomic.Uint64 // nonzero: the writer has nothing more
	data       []byte
	at, seen   uint64      // own counter, and the other's when last looked at
	quit       atomic.Bool // makes a waiting side give up
}

// newRing uses mem, of ringSize bytes that start on a page.
func newRing(mem []byte) *ring {
	word := func(off int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&mem[off])) }
	return &ring{head: word(ringHead), tail: word(ringTail), ended: word(ringEnded), data: mem[ringData:]}
}

// put writes all of b.
func (r *ring) put(b []byte) error {
	for spins := 0; len(b) > 0; {
		room := uint64(len(r.data)) - (r.at - r.seen)
		if room == 0 {
			if err := r.look(r.tail, &spins); err != nil {
				return err
			}
			if r.at-r.seen > uint64(len(r.data)) {
				return errRing
			}
			continue
		}
		at := r.at % uint64(len(r.data))
		n := copy(r.data[at:min(uint64(len(r.data)), at+min(room, ringPiece))], b)
		b = b[n:]
		r.at += uint64(n)
		r.head.Store(r.at)
	}
	return nil
}

// take fills b. It returns false when the writer has ended before the first byte.
func (r *ring) take(b []byte) (ok bool, err error) {
	whole := len(b)
	for spins := 0; len(b) > 0; {
		if r.seen == r.at {
			// Ended is read first: what was written before it is then seen.
			ended := r.ended.Load() != 0 && len(b) == whole
			if err := r.look(r.head, &spins); err != nil {
				return false, err
			}
			if r.seen-r.at > uint64(len(r.data)) {
				return false, errRing
			}
			if ended && r.seen == r.at {
				return false, nil
			}
			continue
		}
		at := r.at % uint64(len(r.data))
		n := copy(b, r.data[at:min(uint64(len(r.data)), at+min(r.seen-r.at, ringPiece))])
		b = b[n:]
		r.at += uint64(n)
		r.tail.Store(r.at)
	}
	return true, nil
}

// drained waits until the reader has taken everything.
func (r *ring) drained() error {
	for spins := 0; r.seen != r.at; {
		if err := r.look(r.tail, &spins); err != nil {
			return err
		}
		if r.at-r.seen > uint64(len(r.data)) {
			return errRing
		}
	}
	return nil
}

// look reads the other side's counter, and from time to time lets others run.
func (r *ring) look(counter *atomic.Uint64, spins *int) error {
	r.seen = counter.Load()
	if *spins++; *spins&1023 == 0 {
		if r.quit.Load() {
			return errors.New("shm baseline: given up")
		}
		runtime.Gosched()
		yield()
	}
	return nil
}
