package devicetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device"
)

func TestLateConforms(t *testing.T) {
	for name, c := range map[string]LateConfig{
		"late":     {Size: MinSize, Seed: 1},
		"mixed":    {Size: MinSize + 24, Seed: 2, Prompt: 0.5},
		"prompt":   {Size: MinSize, Seed: 3, Prompt: 1},
		"noatomic": {Size: MinSize, Seed: 4, NoAtomic: true},
		"tied":     {Size: MinSize, Seed: 5, MaxDelay: 2 * time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			Run(t, func(*testing.T) device.Memory { return NewLate(c) })
		})
	}
}

// A suite that a wrong memory passes is worth nothing.
func TestSuiteFindsFaults(t *testing.T) {
	late := func() *Late { return NewLate(LateConfig{Size: MinSize, Seed: 7}) }
	unordered := func() device.Memory {
		l := late()
		l.unordered = true
		return l
	}
	for _, c := range []struct {
		name  string
		mem   device.Memory
		check func(device.Memory) error
		says  string
	}{
		{"overlaps out of order", unordered(), checkOrder, "want"},
		{"overlapping atomics out of order", unordered(), checkAtomicOrder, "want"},
		{"keeps the caller's bytes", &unstaged{Late: late()}, checkStaging, "caller's slices"},
		{"completes inside the call", &eager{Late: late()}, checkRoundTrip, "inside a call"},
		{"completes twice", &twice{Late: late()}, checkRoundTrip, "not pending"},
		{"never completes", &silent{Late: late()}, checkRoundTrip, "never completed"},
		{"loses an add", &lossy{Late: late()}, checkContention, "different values"},
		{"checks no range", &unchecked{Late: late()}, checkRange, "beyond the memory's end"},
		{"views another size", &shortView{Late: late()}, checkSize, "direct view"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.ErrorContains(t, c.check(c.mem), c.says)
		})
	}
}

// unstaged reads the bytes of a write when it feels like it.
type unstaged struct {
	*Late
	held []device.Vec
}

func (m *unstaged) WriteV(v []device.Vec, token uint64, c device.Completer) (bool, error) {
	m.held = v
	return false, nil
}

func (m *unstaged) ReadV(v []device.Vec, token uint64, c device.Completer) (bool, error) {
	if m.held != nil {
		_, _ = m.Late.WriteV(m.held, 1, c)
		m.held = nil
	}
	return m.Late.ReadV(v, token, c)
}

// eager calls back at once.
type eager struct{ *Late }

func (m *eager) WriteV(v []device.Vec, token uint64, c device.Completer) (bool, error) {
	c.MemoryDone(token, nil)
	return false, nil
}

// twice says done and calls back all the same.
type twice struct{ *Late }

func (m *twice) WriteV(v []device.Vec, token uint64, c device.Completer) (bool, error) {
	_, err := m.Late.WriteV(v, token, c)
	return true, err
}

// silent forgets to call back.
type silent struct{ *Late }

func (m *silent) WriteV([]device.Vec, uint64, device.Completer) (bool, error) { return false, nil }

// lossy reads and writes a word in two steps.
type lossy struct{ *Late }

func (m *lossy) Atomic(op *device.AtomicOp, _ uint64, _ device.Completer) (bool, error) {
	op.Result = 1
	return true, nil
}

// unchecked believes what it is told.
type unchecked struct{ *Late }

func (m *unchecked) ReadV([]device.Vec, uint64, device.Completer) (bool, error) { return true, nil }

func (m *unchecked) WriteV([]device.Vec, uint64, device.Completer) (bool, error) { return true, nil }

type shortView struct{ *Late }

func (m *shortView) Bytes() []byte { return make([]byte, 5) }
