package atomic_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pgregory.net/rapid"

	ratomic "github.com/gohixl/hixl/atomic"
	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/devicetest"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.VerifyTestMain(m) }

// viaDo is a memory whose atomics go through Do, so that the conformance suite
// judges Do.
type viaDo struct{ device.Memory }

func (m viaDo) Atomic(op *device.AtomicOp, token uint64, c device.Completer) (bool, error) {
	return ratomic.Do(m.Memory, op, token, c)
}

// bare is a memory without atomics whose copies are done at once. As long as Do
// excludes, the counter's increments are not lost.
type bare struct{ *host.Memory }

func (m bare) Atomic(*device.AtomicOp, uint64, device.Completer) (bool, error) {
	return true, device.ErrNoAtomic
}

// WriteV and ReadV give other goroutines every chance to come between.
func (m bare) ReadV(v []device.Vec, token uint64, c device.Completer) (bool, error) {
	runtime.Gosched()
	return m.Memory.ReadV(v, token, c)
}

func TestConformsOverHostMemory(t *testing.T) {
	devicetest.Run(t, func(*testing.T) device.Memory {
		return viaDo{host.New(make([]byte, devicetest.MinSize))}
	})
}

func TestConformsEmulatedAtOnce(t *testing.T) {
	devicetest.Run(t, func(*testing.T) device.Memory {
		return viaDo{&bare{host.New(make([]byte, devicetest.MinSize))}}
	})
}

// waits is a place to wait for completions.
type waits struct {
	mu      sync.Mutex
	tokens  map[uint64]error
	repeats int
}

func newWaits() *waits { return &waits{tokens: make(map[uint64]error)} }

func (w *waits) MemoryDone(token uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.tokens[token]; ok {
		w.repeats++
	}
	w.tokens[token] = err
}

// Every interleaving of late copies gives what some order of the operations
// gives; adds commute, so their sum and the set of results tell.
func TestEmulationOnLateMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := devicetest.NewLate(devicetest.LateConfig{
			Size: 64, NoAtomic: true, Seed: rapid.Uint64().Draw(t, "seed"),
			MaxDelay: time.Duration(rapid.IntRange(1, 50).Draw(t, "delay")),
			Prompt:   rapid.Float64Range(0, 1).Draw(t, "prompt"),
		})
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
		w := newWaits()
		const n = 60
		ops := make([]device.AtomicOp, n)
		for i := range ops {
			ops[i] = device.AtomicOp{Kind: device.FetchAdd, Off: 8 * rng.Uint64N(3), Operand: 1}
			if done, err := ratomic.Do(l, &ops[i], uint64(i), w); done {
				w.MemoryDone(uint64(i), err)
			}
			if rng.IntN(3) == 0 {
				l.Step(l.Next())
			}
		}
		l.Drain()

		require.Len(t, w.tokens, n)
		require.Zero(t, w.repeats)
		var sum [3]uint64
		seen := make(map[[2]uint64]bool)
		for i := range ops {
			require.NoError(t, w.tokens[uint64(i)])
			sum[ops[i].Off/8]++
			seen[[2]uint64{ops[i].Off, ops[i].Result}] = true
		}
		require.Len(t, seen, n, "each add saw another value")
		for i, want := range sum {
			require.Equal(t, want, binary.NativeEndian.Uint64(l.Snapshot()[8*i:]))
		}
	})
}

// Operations on one word take effect in the order of their calls.
func TestEmulationKeepsOrderOnAWord(t *testing.T) {
	l := devicetest.NewLate(devicetest.LateConfig{Size: 16, NoAtomic: true, Seed: 3})
	w := newWaits()
	ops := []device.AtomicOp{
		{Kind: device.Store, Off: 8, Operand: 5, Result: 99},
		{Kind: device.FetchAdd, Off: 8, Operand: 2},
		{Kind: device.CompareSwap, Off: 8, Compare: 7, Operand: 20},
		{Kind: device.CompareSwap, Off: 8, Compare: 7, Operand: 30},
		{Kind: device.FetchAdd, Off: 8, Operand: 1},
	}
	for i := range ops {
		done, err := ratomic.Do(l, &ops[i], uint64(i), w)
		require.False(t, done)
		require.NoError(t, err)
	}
	l.Drain()
	require.Len(t, w.tokens, len(ops))
	for i, want := range []uint64{99, 5, 7, 20, 20} {
		require.Equal(t, want, ops[i].Result, "operation %d", i)
	}
	require.EqualValues(t, 21, binary.NativeEndian.Uint64(l.Snapshot()[8:]))
}

// A failing copy fails its operation and no other.
func TestEmulationReportsFailures(t *testing.T) {
	l := devicetest.NewLate(devicetest.LateConfig{Size: 8, NoAtomic: true, Seed: 5, ErrorRate: 0.3, Prompt: 0.2})
	w := newWaits()
	ops := make([]device.AtomicOp, 200)
	for i := range ops {
		ops[i] = device.AtomicOp{Kind: device.FetchAdd, Operand: 1}
		if done, err := ratomic.Do(l, &ops[i], uint64(i), w); done {
			w.MemoryDone(uint64(i), err)
		}
	}
	l.Drain()
	require.Len(t, w.tokens, len(ops))
	failed := 0
	for _, err := range w.tokens {
		if err != nil {
			require.ErrorIs(t, err, devicetest.ErrInjected)
			failed++
		}
	}
	require.Positive(t, failed)
	require.Less(t, failed, len(ops))
	require.GreaterOrEqual(t, binary.NativeEndian.Uint64(l.Snapshot()), uint64(len(ops)-failed))
}

func TestEmulationRefuses(t *testing.T) {
	m := &bare{host.New(make([]byte, 64))}
	for _, c := range []struct {
		op   device.AtomicOp
		want error
	}{
		{device.AtomicOp{}, device.ErrKind},
		{device.AtomicOp{Kind: device.Store, Off: 4}, device.ErrAlign},
		{device.AtomicOp{Kind: device.FetchAdd, Off: 64}, device.ErrRange},
	} {
		done, err := ratomic.Do(m, &c.op, 0, nil)
		require.True(t, done)
		require.ErrorIs(t, err, c.want)
	}
}

// broken fails in its own way; Do must not take that for a lack of atomics.
type broken struct{ *host.Memory }

var errBroken = errors.New("broken")

func (broken) Atomic(*device.AtomicOp, uint64, device.Completer) (bool, error) {
	return true, errBroken
}

func TestOtherErrorsPass(t *testing.T) {
	_, err := ratomic.Do(broken{host.New(make([]byte, 8))}, &device.AtomicOp{Kind: device.FetchAdd}, 0, nil)
	require.Equal(t, errBroken, err)
}

// Several goroutines, one late memory driven by another: the queue behind a busy
// word is passed on between them.
func TestEmulationConcurrently(t *testing.T) {
	const (
		workers = 4
		rounds  = 100
	)
	l := devicetest.NewLate(devicetest.LateConfig{Size: 8, NoAtomic: true, Seed: 9, Prompt: 0.3})
	w := newWaits()
	ops := make([]device.AtomicOp, workers*rounds)
	stop := make(chan struct{})
	var driver, issuers sync.WaitGroup
	driver.Go(func() {
		for {
			select {
			case <-stop:
				l.Drain()
				return
			default:
				l.Step(l.Next())
				runtime.Gosched()
			}
		}
	})
	for k := range workers {
		issuers.Go(func() {
			for i := k * rounds; i < (k+1)*rounds; i++ {
				ops[i] = device.AtomicOp{Kind: device.FetchAdd, Operand: 1}
				if done, err := ratomic.Do(l, &ops[i], uint64(i), w); done {
					w.MemoryDone(uint64(i), err)
				}
			}
		})
	}
	issuers.Wait()
	close(stop)
	driver.Wait()
	require.Len(t, w.tokens, workers*rounds)
	require.Zero(t, w.repeats)
	require.EqualValues(t, workers*rounds, binary.NativeEndian.Uint64(l.Snapshot()))
}

func TestHostPathAllocatesNothing(t *testing.T) {
	var m device.Memory = host.New(make([]byte, 64))
	op := &device.AtomicOp{Kind: device.FetchAdd, Operand: 1}
	require.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = ratomic.Do(m, op, 0, nil) }))
}

func BenchmarkHost(b *testing.B) {
	var m device.Memory = host.New(make([]byte, 64))
	op := &device.AtomicOp{Kind: device.FetchAdd, Operand: 1}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = ratomic.Do(m, op, 0, nil)
	}
}

func BenchmarkEmulated(b *testing.B) {
	var m device.Memory = &bare{host.New(make([]byte, 64))}
	op := &device.AtomicOp{Kind: device.FetchAdd, Operand: 1}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = ratomic.Do(m, op, 0, nil)
	}
}
