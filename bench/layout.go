package bench

import "fmt"

const (
	// slotAlign is what a message's place in the region is a multiple of: a
	// cache line, as an allocator would give.
	slotAlign = 64
	// lapShifts is the number of different source shifts; a prime, so that no
	// usual number of slots divides it.
	lapShifts = 61
	// slack is what a source region is longer than its destination.
	slack = lapShifts * slotAlign
)

// layout says where message n of a lane (one queue pair, one TCP connection)
// lies. Each lane owns a run of slots in the destination and walks it in laps.
// The source starts 64 bytes later every lap: a message that did not arrive
// leaves the bytes of the lap before, which are not the ones expected.
type layout struct {
	size, stride int
	lanes, slots int
}

// newLayout divides region bytes among lanes.
func newLayout(region, size, lanes int) (layout, error) {
	l := layout{size: size, stride: (size + slotAlign - 1) / slotAlign * slotAlign, lanes: lanes}
	if l.slots = region / lanes / l.stride; l.slots < 1 {
		return l, &FlagError{
			Flag: "region", Given: formatSize(region),
			Allowed: fmt.Sprintf("at least %s for %d queue pairs of %s messages", formatSize(lanes*l.stride), lanes, formatSize(size)),
			Do:      "raise --region, or lower --size or --qps",
		}
	}
	return l, nil
}

// dst is the offset of a lane's slot in the destination.
func (l *layout) dst(lane, slot int) int { return (lane*l.slots + slot) * l.stride }

// src is the offset of the source of that slot in a lap.
func (l *layout) src(lane, slot int, lap uint64) int {
	return l.dst(lane, slot) + int(lap%lapShifts)*slotAlign
}

// used is the length of the destination that messages can reach.
func (l *layout) used() int { return l.lanes * l.slots * l.stride }

// walker steps through the messages of a lane without dividing.
type walker struct {
	l    *layout
	lane int
	slot int
	lap  uint64
	n    uint64
}

func (l *layout) walk(lane int) walker { return walker{l: l, lane: lane} }

// next returns where the next message goes and where it comes from.
func (w *walker) next() (dst, src int) {
	dst = w.l.dst(w.lane, w.slot)
	src = dst + int(w.lap)*slotAlign
	w.n++
	if w.slot++; w.slot == w.l.slots {
		w.slot = 0
		if w.lap++; w.lap == lapShifts {
			w.lap = 0
		}
	}
	return dst, src
}

// span is the messages of one lane, from (inclusive) to (exclusive), that were
// sent since the destination was cleared.
type span struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// verify compares a destination with what spans, one a lane, must have left in
// it: the last message of each slot, zeros in a slot that none reached and in
// the gaps between messages, and zeros to the end of the region.
func (l *layout) verify(dst []byte, key uint64, spans []span) error {
	for lane, s := range spans {
		for slot := range l.slots {
			if err := l.verifySlot(dst, key, lane, slot, s); err != nil {
				return err
			}
		}
	}
	return clearFrom(dst, l.used())
}

func (l *layout) verifySlot(dst []byte, key uint64, lane, slot int, s span) error {
	at := l.dst(lane, slot)
	laps, ok := lastLap(s, uint64(slot), uint64(l.slots))
	if !ok {
		return clearFrom(dst[:at+l.stride], at)
	}
	src := uint64(l.src(lane, slot, laps))
	if i, want := mismatch(dst[at:at+l.size], key, src); i >= 0 {
		m := &MismatchError{Offset: at + i, Want: want, Got: dst[at+i]}
		m.Stale = l.fromLapBefore(dst[at:at+l.size], i, key, lane, slot, laps)
		return m
	}
	return clearFrom(dst[:at+l.stride], at+l.size)
}

// lastLap returns the lap in which the last message of a slot was sent.
func lastLap(s span, slot, slots uint64) (lap uint64, ok bool) {
	if s.To <= slot {
		return 0, false
	}
	lap = (s.To - 1 - slot) / slots
	return lap, lap*slots+slot >= s.From
}

// fromLapBefore reports whether the bytes at i are those of the lap before.
func (l *layout) fromLapBefore(b []byte, i int, key uint64, lane, slot int, lap uint64) bool {
	if lap == 0 {
		return false
	}
	from := i &^ 7
	to := min(from+8, len(b))
	at, _ := mismatch(b[from:to], key, uint64(l.src(lane, slot, lap-1)+from))
	return at < 0
}

// clearFrom checks that b is zero from an offset on.
func clearFrom(b []byte, from int) error {
	if i := nonzero(b[from:]); i >= 0 {
		return &MismatchError{Offset: from + i, Want: 0, Got: b[from+i]}
	}
	return nil
}
