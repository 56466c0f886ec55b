package devicetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/gohixl/hixl/device"
)

// Orders are tried on a small window, so that almost everything overlaps.
const (
	window   = 96
	orderOps = 300
	seeds    = 10
)

func checkOrder(m device.Memory) error { return checkOrders(m, false) }

func checkAtomicOrder(m device.Memory) error { return checkOrders(m, true) }

func checkOrders(m device.Memory, atomics bool) error {
	for seed := range uint64(seeds) {
		if err := checkOneOrder(m, atomics, seed); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	return nil
}

func checkOneOrder(m device.Memory, atomics bool, seed uint64) error {
	o := &orderCheck{
		t: newTracker(m), rng: rand.New(rand.NewPCG(seed, 1)),
		model: make([]byte, window), atomics: atomics,
	}
	return o.run(m)
}

// orderCheck issues random operations and compares them with a model that
// executes each at once: that is what the order of issue means.
type orderCheck struct {
	t       *tracker
	rng     *rand.Rand
	model   []byte
	atomics bool
	tokens  []uint64
	verify  []func() error // to be run when all is done
}

func (o *orderCheck) run(m device.Memory) error {
	if err := fill(m, 0, o.model); err != nil {
		return err
	}
	for range orderOps {
		switch o.rng.IntN(4) {
		case 0:
			o.read()
		case 1:
			if o.atomics {
				o.atomic()
			}
		case 2:
			o.step()
		default:
			o.write()
		}
	}
	if err := o.t.mustSucceed(o.tokens...); err != nil {
		return err
	}
	for _, v := range o.verify {
		if err := v(); err != nil {
			return err
		}
	}
	return expect(m, 0, o.model)
}

// step lets a driven memory do some of its work.
func (o *orderCheck) step() {
	if s, ok := o.t.mem.(Stepper); ok {
		if next := s.Next(); !next.IsZero() {
			s.Step(next)
		}
	}
}

// vec is one to three pieces in the window.
func (o *orderCheck) vec() []device.Vec {
	v := make([]device.Vec, 1+o.rng.IntN(3))
	for i := range v {
		off := o.rng.IntN(window)
		v[i] = device.Vec{Off: uint64(off), B: make([]byte, o.rng.IntN(min(40, window-off)+1))}
	}
	return v
}

func (o *orderCheck) write() {
	v := o.vec()
	for i := range v {
		for k := range v[i].B {
			v[i].B[k] = byte(o.rng.Uint32())
		}
		copy(o.model[v[i].Off:], v[i].B)
	}
	o.tokens = append(o.tokens, o.t.write(v...))
}

func (o *orderCheck) read() {
	v := o.vec()
	want := make([][]byte, len(v))
	for i := range v {
		want[i] = append([]byte(nil), o.model[v[i].Off:][:len(v[i].B)]...)
	}
	n := len(o.tokens)
	o.tokens = append(o.tokens, o.t.read(v...))
	o.verify = append(o.verify, func() error {
		for i := range v {
			if !bytes.Equal(v[i].B, want[i]) {
				return fmt.Errorf("operation %d read % x at %d, want % x", n, v[i].B, v[i].Off, want[i])
			}
		}
		return nil
	})
}

func (o *orderCheck) atomic() {
	op := &device.AtomicOp{
		Kind: device.Kind(1 + o.rng.IntN(3)), Off: 8 * uint64(o.rng.IntN(window/8)), Operand: o.rng.Uint64(),
	}
	word := o.model[op.Off:][:8]
	old := binary.NativeEndian.Uint64(word)
	if op.Compare = o.rng.Uint64(); o.rng.IntN(2) == 0 {
		op.Compare = old
	}
	model := *op
	applyAtomic(word, &model)
	n := len(o.tokens)
	o.tokens = append(o.tokens, o.t.atomic(op))
	o.verify = append(o.verify, func() error {
		if *op != model {
			return fmt.Errorf("operation %d is %+v, want %+v", n, *op, model)
		}
		return nil
	})
}
