package bridge

import (
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	maxPassing = 4                    // packets that overtake a held one at most
	holdTime   = 5 * time.Millisecond // how long one is held when none overtakes it
)

// Faults are probabilities per RoCE packet, 0..1. The zero value has none.
type Faults struct {
	Seed uint64 // of the random choices
	// Loss drops the packet, Duplicate delivers it twice, Reorder holds it until 1
	// to 4 later ones of the same port have passed, or 5 ms.
	Loss, Duplicate, Reorder float64
	// Corrupt flips one bit from the BTH to the ICRC and makes the UDP checksum
	// right again, so that only the ICRC can tell.
	Corrupt float64
}

// String names the faults, "none" for none.
func (f Faults) String() string {
	s := ""
	for _, k := range [...]struct {
		p    float64
		name string
	}{{f.Loss, "loss"}, {f.Reorder, "reordering"}, {f.Duplicate, "duplication"}, {f.Corrupt, "corruption"}} {
		if k.p == 0 {
			continue
		}
		if s != "" {
			s += ", "
		}
		s += fmt.Sprintf("%g %% %s", 100*k.p, k.name)
	}
	if s == "" {
		return "none"
	}
	return s
}

// SetFaults damages what comes in by the named port from now on; by every port
// when the name is empty, each with a seed of its own.
func (s *Switch) SetFaults(name string, f Faults) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name != "" && s.find(name) == nil {
		return fmt.Errorf("%w: %q", ErrPort, name)
	}
	for i, p := range s.ports {
		if name == "" || p.name == name {
			g := f
			g.Seed += uint64(i)
			p.faults.set(g)
		}
	}
	return nil
}

// injector makes the faults of one port. Switch.mu guards it.
type injector struct {
	Faults
	port  *port
	rand  *rand.Rand
	held  []held
	timer *time.Timer
	ended bool
}

type held struct {
	frame   []byte
	passing int // packets that still overtake it
}

func (j *injector) set(f Faults) {
	j.Faults = f
	j.rand = rand.New(rand.NewPCG(f.Seed, 0x6272696467650a))
}

func (j *injector) hits(p float64) bool { return p > 0 && j.rand.Float64() < p }

// pass forwards a RoCE packet or does something worse.
func (j *injector) pass(s *Switch, frame []byte, v *view) {
	if j.hits(j.Loss) {
		j.port.counts.Lost++
		return
	}
	if j.hits(j.Corrupt) {
		j.port.counts.Corrupted++
		v.flip(j.rand.IntN(8 * len(v.frame.Payload)))
	}
	if j.hits(j.Reorder) {
		j.port.counts.Reordered++
		j.hold(s, frame)
		return
	}
	s.forward(j.port, frame)
	if j.hits(j.Duplicate) {
		j.port.counts.Duplicated++
		s.forward(j.port, frame)
	}
	j.release(s, 1)
}

// hold keeps a frame until others have passed.
func (j *injector) hold(s *Switch, frame []byte) {
	j.held = append(j.held, held{frame, 1 + j.rand.IntN(maxPassing)})
	if j.timer == nil {
		j.timer = time.AfterFunc(holdTime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			j.timer = nil
			j.flush(s)
		})
	}
}

// release lets go of what n more packets have overtaken.
func (j *injector) release(s *Switch, n int) {
	keep := j.held[:0]
	for _, h := range j.held {
		if h.passing -= n; h.passing > 0 {
			keep = append(keep, h)
		} else if !j.ended {
			s.forward(j.port, h.frame)
		}
	}
	j.held = keep
}

func (j *injector) flush(s *Switch) { j.release(s, maxPassing) }

// stop drops what is held; the port is going.
func (j *injector) stop() {
	j.ended, j.held = true, nil
	if j.timer != nil {
		j.timer.Stop()
	}
}
