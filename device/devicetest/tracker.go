package devicetest

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/internal/mono"
)

// Stepper is a memory that has to be driven, such as Late.
type Stepper interface {
	Step(now mono.Time) int
	Next() mono.Time
}

// patience is how long the suite waits for a memory that drives itself.
const patience = 2 * time.Minute

// tracker issues operations and checks that each is completed as promised.
type tracker struct {
	mem device.Memory

	mu       sync.Mutex
	changed  *sync.Cond
	tokens   uint64
	pending  map[uint64]bool
	failures []error          // broken promises
	results  map[uint64]error // of finished operations
}

func newTracker(m device.Memory) *tracker {
	t := &tracker{mem: m, pending: make(map[uint64]bool), results: make(map[uint64]error)}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// MemoryDone checks the promises of device.Completer.
func (t *tracker) MemoryDone(token uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.pending[token]:
		t.failures = append(t.failures, fmt.Errorf("MemoryDone for token %d, which is not pending", token))
	case insideIssue():
		t.failures = append(t.failures, fmt.Errorf("MemoryDone for token %d from inside a call", token))
	}
	delete(t.pending, token)
	t.results[token] = err
	t.changed.Broadcast()
}

// insideIssue reports whether the caller's caller runs inside tracker.issue.
func insideIssue() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "(*tracker).issue") {
			return true
		}
		if !more {
			return false
		}
	}
}

// issue starts an operation under a fresh token.
func (t *tracker) issue(start func(token uint64, c device.Completer) (bool, error)) uint64 {
	t.mu.Lock()
	t.tokens++
	token := t.tokens
	t.pending[token] = true
	t.mu.Unlock()

	done, err := start(token, t)

	t.mu.Lock()
	defer t.mu.Unlock()
	_, called := t.results[token]
	switch {
	case done && called:
		t.failures = append(t.failures, errors.New("MemoryDone although the call said done"))
	case !done && err != nil:
		t.failures = append(t.failures, fmt.Errorf("not done, yet with error %w", err))
	case done:
		delete(t.pending, token)
		t.results[token] = err
	}
	return token
}

func (t *tracker) write(v ...device.Vec) uint64 {
	return t.issue(func(token uint64, c device.Completer) (bool, error) { return t.mem.WriteV(v, token, c) })
}

func (t *tracker) read(v ...device.Vec) uint64 {
	return t.issue(func(token uint64, c device.Completer) (bool, error) { return t.mem.ReadV(v, token, c) })
}

func (t *tracker) atomic(op *device.AtomicOp) uint64 {
	return t.issue(func(token uint64, c device.Completer) (bool, error) { return t.mem.Atomic(op, token, c) })
}

// settle waits until nothing is pending and returns what promises were broken.
func (t *tracker) settle() error {
	if s, ok := t.mem.(Stepper); ok {
		for next := s.Next(); !next.IsZero(); next = s.Next() {
			s.Step(next)
		}
	} else {
		t.await()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.pending); n > 0 {
		return fmt.Errorf("%d operations never completed", n)
	}
	return errors.Join(t.failures...)
}

// await gives a memory that drives itself time to finish.
func (t *tracker) await() {
	deadline := time.AfterFunc(patience, t.changed.Broadcast)
	defer deadline.Stop()
	end := time.Now().Add(patience)
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.pending) > 0 && time.Now().Before(end) {
		t.changed.Wait()
	}
}

// result is the error of a finished operation.
func (t *tracker) result(token uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.results[token]
}

// mustSucceed settles and returns the first error of the operations.
func (t *tracker) mustSucceed(tokens ...uint64) error {
	if err := t.settle(); err != nil {
		return err
	}
	for _, token := range tokens {
		if err := t.result(token); err != nil {
			return fmt.Errorf("operation %d failed: %w", token, err)
		}
	}
	return nil
}
