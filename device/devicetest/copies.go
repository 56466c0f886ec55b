package devicetest

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/gohixl/hixl/device"
)

// pattern is n bytes that differ by place and seed.
func pattern(seed byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = seed + byte(i*7) + byte(i>>8)
	}
	return b
}

// content reads n bytes at off.
func content(m device.Memory, off uint64, n int) ([]byte, error) {
	b := make([]byte, n)
	t := newTracker(m)
	err := t.mustSucceed(t.read(device.Vec{Off: off, B: b}))
	return b, err
}

// expect compares the content at off.
func expect(m device.Memory, off uint64, want []byte) error {
	got, err := content(m, off, len(want))
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("bytes at %d are % x, want % x", off, got, want)
	}
	return err
}

func checkSize(m device.Memory) error {
	b := m.Bytes()
	if b == nil {
		return nil
	}
	if uint64(len(b)) != m.Size() {
		return fmt.Errorf("direct view of %d bytes, size %d", len(b), m.Size())
	}
	if again := m.Bytes(); &again[0] != &b[0] {
		return errors.New("the direct view moved")
	}
	if err := fill(m, 100, pattern(3, 50)); err != nil {
		return err
	}
	if !bytes.Equal(b[100:150], pattern(3, 50)) {
		return errors.New("the direct view does not show what was written")
	}
	b[120] ^= 0xff
	want := append([]byte(nil), b[100:150]...)
	return expect(m, 100, want)
}

// fill writes b at off.
func fill(m device.Memory, off uint64, b []byte) error {
	t := newTracker(m)
	return t.mustSucceed(t.write(device.Vec{Off: off, B: b}))
}

func checkRoundTrip(m device.Memory) error {
	whole := int(min(m.Size(), 1<<20))
	for _, r := range [][2]int{{0, whole}, {0, 1}, {1, 7}, {13, 1000}, {whole - 1, 1}, {whole, 0}} {
		want := pattern(byte(r[1]), r[1])
		if err := fill(m, uint64(r[0]), want); err != nil {
			return err
		}
		if err := expect(m, uint64(r[0]), want); err != nil {
			return err
		}
	}
	end := m.Size()
	return errors.Join(fill(m, end-3, []byte("end")), expect(m, end-3, []byte("end")))
}

func checkVectors(m device.Memory) error {
	t := newTracker(m)
	w := t.write(
		device.Vec{Off: 10, B: []byte("abcdef")},
		device.Vec{Off: 500},
		device.Vec{Off: 12, B: []byte("XY")}, // over the first, in the order of the list
		device.Vec{Off: 300, B: []byte("gh")},
	)
	a, b, empty := make([]byte, 4), make([]byte, 3), t.write()
	r := t.read(device.Vec{Off: 299, B: b}, device.Vec{Off: m.Size()}, device.Vec{Off: 11, B: a})
	if err := t.mustSucceed(w, empty, r); err != nil {
		return err
	}
	if string(a) != "bXYe" || string(b[1:]) != "gh" {
		return fmt.Errorf("read %q and %q, want \"bXYe\" and \"?gh\"", a, b)
	}
	return nil
}

// checkStaging reuses everything that is the caller's again after the call.
func checkStaging(m device.Memory) error {
	t := newTracker(m)
	v := []device.Vec{{Off: 64, B: pattern(1, 200)}}
	w := t.write(v...)
	clear(v[0].B)
	first := v[0]
	v[0] = device.Vec{Off: 900, B: make([]byte, 10)}
	got := make([]byte, 200)
	v[0] = device.Vec{Off: 64, B: got}
	r := t.read(v...)
	v[0] = first
	if err := t.mustSucceed(w, r); err != nil {
		return err
	}
	if !bytes.Equal(got, pattern(1, 200)) {
		return errors.New("a write or read used the caller's slices after the call had returned")
	}
	return nil
}

// refusal complains unless the call was over at once with the error wanted.
func refusal(done bool, err, want error) error {
	if done && errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf("done %v with error %q, want a refusal with %q", done, fmt.Sprint(err), want.Error())
}

func checkRange(m device.Memory) error {
	size := m.Size()
	before, err := content(m, 0, 16)
	if err != nil {
		return err
	}
	for _, bad := range []device.Vec{
		{Off: size, B: make([]byte, 1)},
		{Off: size - 1, B: make([]byte, 2)},
		{Off: size + 1},
		{Off: math.MaxUint64, B: make([]byte, 1)},
		{Off: math.MaxUint64 - 7, B: make([]byte, 64)}, // the sum wraps into the memory
		{Off: 0, B: make([]byte, size+1)},
	} {
		for name, op := range map[string]func([]device.Vec, uint64, device.Completer) (bool, error){
			"write": m.WriteV, "read": m.ReadV,
		} {
			done, err := op([]device.Vec{{Off: 0, B: pattern(9, 16)}, bad}, 0, nil)
			if err := refusal(done, err, device.ErrRange); err != nil {
				return fmt.Errorf("%s of %d bytes at %d: %w", name, len(bad.B), bad.Off, err)
			}
		}
	}
	return expect(m, 0, before) // a refused write moves nothing
}
