package atomic

import (
	"encoding/binary"
	"hash/maphash"
	"sync"

	"github.com/gohixl/hixl/device"
)

// word names a 64-bit word of a memory.
type word struct {
	mem device.Memory
	off uint64
}

// stripe excludes operations on the words that hash to it. On a memory that is
// done at once the lock itself excludes; on one that finishes later the word is
// marked busy and others queue behind it.
type stripe struct {
	mu    sync.Mutex
	busy  map[word]*job // guarded by mu; the running job, the rest behind it by next
	spare *job          // guarded by mu
}

const stripeCount = 64 // power of two

var (
	stripes [stripeCount]stripe
	seed    = maphash.MakeSeed()
)

func stripeOf(w word) *stripe {
	return &stripes[maphash.Comparable(seed, w)%stripeCount]
}

// job is one emulated operation: a read, then a write if the word changes.
type job struct {
	stripe *stripe
	word   word
	op     *device.AtomicOp
	token  uint64
	c      device.Completer

	writing    bool // the read is over
	buf        [device.WordSize]byte
	vec        [1]device.Vec
	next, last *job // next in the queue; last is kept by the head only
	err        error
}

// emulate starts op, or queues it behind those that hold its word.
func emulate(mem device.Memory, op *device.AtomicOp, token uint64, c device.Completer) (bool, error) {
	w := word{mem: mem, off: op.Off}
	s := stripeOf(w)
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.get()
	j.stripe, j.word, j.op, j.token, j.c = s, w, op, token, c
	if head := s.busy[w]; head != nil {
		head.last.next = j
		head.last = j
		return false, nil
	}
	if !j.start() {
		if s.busy == nil {
			s.busy = make(map[word]*job)
		}
		j.last = j
		s.busy[w] = j // before anybody can lock and look
		return false, nil
	}
	err := j.err
	s.put(j)
	return true, err
}

// start reads the word, or stores at once where its old value does not matter.
// It reports whether the operation is over, with its error in j.err.
func (j *job) start() bool {
	if j.op.Kind == device.Store {
		return j.write(j.op.Operand)
	}
	j.vec[0] = device.Vec{Off: j.word.off, B: j.buf[:]}
	done, err := j.word.mem.ReadV(j.vec[:], 0, j)
	if !done {
		return false
	}
	return j.advance(err)
}

// advance goes on after the read or the write ended with err.
func (j *job) advance(err error) bool {
	if err != nil || j.writing {
		j.err = err
		return true
	}
	old := binary.NativeEndian.Uint64(j.buf[:])
	j.op.Result = old
	if value, store := j.op.Apply(old); store {
		return j.write(value)
	}
	return true
}

func (j *job) write(value uint64) bool {
	j.writing = true
	binary.NativeEndian.PutUint64(j.buf[:], value)
	j.vec[0] = device.Vec{Off: j.word.off, B: j.buf[:]}
	done, err := j.word.mem.WriteV(j.vec[:], 0, j)
	j.err = err
	return done
}

// MemoryDone goes on with the operation, and with those queued behind it for as
// long as they are done at once. It reports them with no lock held.
func (j *job) MemoryDone(_ uint64, err error) {
	s := j.stripe
	s.mu.Lock()
	var over, tail *job
	for finished := j.advance(err); finished; {
		next := s.popHead(j)
		j.next = nil
		if over == nil {
			over = j
		} else {
			tail.next = j
		}
		tail = j
		if next == nil {
			break
		}
		j = next
		finished = j.start()
	}
	s.mu.Unlock()
	for over != nil {
		j, over = over, over.next
		c, token, err := j.c, j.token, j.err
		s.recycle(j)
		c.MemoryDone(token, err)
	}
}

// popHead ends the turn of j, the head of its word's queue, and returns the next
// head.
func (s *stripe) popHead(j *job) *job {
	next := j.next
	if next == nil {
		delete(s.busy, j.word)
		return nil
	}
	next.last = j.last
	s.busy[j.word] = next
	return next
}

// get returns an empty job. The caller holds mu.
func (s *stripe) get() *job {
	j := s.spare
	if j == nil {
		return new(job)
	}
	s.spare = j.next
	j.next = nil
	return j
}

// put keeps j for reuse without what it points at. The caller holds mu.
func (s *stripe) put(j *job) {
	*j = job{next: s.spare}
	s.spare = j
}

func (s *stripe) recycle(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(j)
}
