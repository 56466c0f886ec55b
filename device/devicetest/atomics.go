package devicetest

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/gohixl/hixl/device"
)

// word is 8 bytes as the host's CPU stores v.
func word(v uint64) []byte { return binary.NativeEndian.AppendUint64(nil, v) }

func checkAtomic(m device.Memory) error {
	const off = 64
	const start = 0x1122334455667788
	for _, c := range []struct {
		op     device.AtomicOp
		result uint64
		word   uint64
	}{
		{device.AtomicOp{Kind: device.CompareSwap, Compare: start, Operand: 7}, start, 7},
		{device.AtomicOp{Kind: device.CompareSwap, Compare: start + 1, Operand: 7}, start, start},
		{device.AtomicOp{Kind: device.FetchAdd, Operand: 5}, start, start + 5},
		{device.AtomicOp{Kind: device.FetchAdd, Operand: math.MaxUint64}, start, start - 1},
		{device.AtomicOp{Kind: device.Store, Operand: 9, Result: 42}, 42, 9},
	} {
		if err := fill(m, off-8, append(append(word(1), word(start)...), word(2)...)); err != nil {
			return err
		}
		op := c.op
		op.Off = off
		t := newTracker(m)
		if err := t.mustSucceed(t.atomic(&op)); err != nil {
			return err
		}
		if op.Result != c.result {
			return fmt.Errorf("%v of %#x: result %#x, want %#x", op.Kind, start, op.Result, c.result)
		}
		if err := expect(m, off-8, append(append(word(1), word(c.word)...), word(2)...)); err != nil {
			return fmt.Errorf("%v: %w", op.Kind, err)
		}
	}
	return nil
}

func checkAtomicRefusals(m device.Memory) error {
	size := m.Size()
	for _, c := range []struct {
		op   device.AtomicOp
		want error
	}{
		{device.AtomicOp{Kind: 0}, device.ErrKind},
		{device.AtomicOp{Kind: device.Store + 1}, device.ErrKind},
		{device.AtomicOp{Kind: device.FetchAdd, Off: 4}, device.ErrAlign},
		{device.AtomicOp{Kind: device.Store, Off: 1}, device.ErrAlign},
		{device.AtomicOp{Kind: device.FetchAdd, Off: size}, device.ErrRange},
		{device.AtomicOp{Kind: device.CompareSwap, Off: size - 7}, device.ErrRange},
		{device.AtomicOp{Kind: device.FetchAdd, Off: math.MaxUint64 - 7}, device.ErrRange},
	} {
		op := c.op
		done, err := m.Atomic(&op, 0, nil)
		if err := refusal(done, err, c.want); err != nil {
			return fmt.Errorf("%v at %d: %w", op.Kind, op.Off, err)
		}
	}
	return nil
}

// checkContention lets several goroutines add to one word and swap another.
func checkContention(m device.Memory) error {
	const (
		workers = 4
		rounds  = 200
	)
	if err := fill(m, 0, make([]byte, 16)); err != nil {
		return err
	}
	t := newTracker(m)
	ops := make([][rounds]device.AtomicOp, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range ops[w] {
				op := &ops[w][i]
				*op = device.AtomicOp{Kind: device.FetchAdd, Operand: 1}
				t.atomic(op)
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	if err := t.settle(); err != nil {
		return err
	}
	seen := make(map[uint64]bool)
	for w := range ops {
		for i := range ops[w] {
			seen[ops[w][i].Result] = true
		}
	}
	if len(seen) != workers*rounds { // each adder saw another value
		return fmt.Errorf("%d adds returned %d different values", workers*rounds, len(seen))
	}
	return expect(m, 0, word(workers*rounds))
}
