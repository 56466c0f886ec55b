package syncproto

import "github.com/gohixl/hixl/internal/mono"

// The word of a versioned value says which slot is the current one, and a version
// that each change increments.
const slotBits = 16

// VersionOf is the version of a value's word, SlotOf the slot that it names.
func VersionOf(w uint64) uint64 { return w >> slotBits }

// SlotOf is the slot that a value's word names.
func SlotOf(w uint64) uint64 { return w & (1<<slotBits - 1) }

// naming is the word that follows w and names a slot.
func naming(w, slot uint64) uint64 { return (VersionOf(w)+1)<<slotBits | slot }

// ValueConfig is where a value's parts lie. A slot begins with a token.
type ValueConfig struct {
	Off      uint64 // of the value's word
	Slots    uint64 // of the first slot
	SlotSize uint64 // in bytes, a multiple of 8
}

func (c *ValueConfig) slot(n uint64) uint64 { return c.Slots + n*c.SlotSize }

type valuePhase uint8

const (
	valueIdle valuePhase = iota
	valueLooking
	valueReading
	valueConfirming
	valueSettling
	valueJudging
	valueDoubting
	valueWriting
	valueSwapping
	valueFenced
	valueConflict
	valueUncertain
)

// Fetch reads a value. What it has read is in its local memory from 0 on.
type Fetch struct {
	cfg   ValueConfig
	phase valuePhase
	cur   uint64
}

// NewFetch returns a reader at rest.
func NewFetch(cfg ValueConfig) Fetch { return Fetch{cfg: cfg} }

// Begin begins to read.
func (f *Fetch) Begin() { f.phase = valueLooking }

// Version is the version of what was read.
func (f *Fetch) Version() uint64 { return VersionOf(f.cur) }

// Next implements [Machine].
func (f *Fetch) Next(mono.Time) Op {
	switch f.phase {
	case valueLooking, valueConfirming:
		return Op{Kind: Load, Off: f.cfg.Off}
	case valueReading:
		return Op{Kind: Read, Off: f.cfg.slot(SlotOf(f.cur)), Len: f.cfg.SlotSize}
	default:
		return Op{}
	}
}

// Done implements [Machine].
func (f *Fetch) Done(_ mono.Time, r Result) {
	switch f.phase {
	case valueReading:
		f.phase = valueConfirming
	case valueConfirming:
		if r.Word == f.cur {
			f.phase = valueIdle
			return
		}
		fallthrough
	case valueLooking:
		f.cur, f.phase = r.Word, valueReading
	default:
	}
}

// Unknown implements [Machine]: what only reads can be done again.
func (f *Fetch) Unknown(mono.Time) {}

// Publish changes a value, by one of its writers. What it writes is in its local
// memory: a slot, from 0 on, and behind it room for a word.
type Publish struct {
	cfg    ValueConfig
	writer uint64
	phase  valuePhase
	cur    uint64 // the word as it was last seen

	token   uint64
	only    bool // if the version is
	version uint64
	slot    uint64
	written bool

	// A swap of from for to that may have taken effect, or may yet.
	doubt    bool
	from, to uint64
}

// NewPublish returns a writer at rest.
func NewPublish(cfg ValueConfig, writer uint64) Publish { return Publish{cfg: cfg, writer: writer} }

// Begin begins to publish what is in local memory, if no greater token has been seen
// and, with only, if the version is that one.
func (p *Publish) Begin(token uint64, only bool, version uint64) {
	p.token, p.only, p.version, p.written, p.phase = token, only, version, false, valueLooking
}

// Version is that which was published, or that which stands in the way.
func (p *Publish) Version() uint64 { return VersionOf(p.cur) }

// Fenced reports whether a greater token was published before.
func (p *Publish) Fenced() bool { return p.phase == valueFenced }

// Conflict reports whether the value has another version.
func (p *Publish) Conflict() bool { return p.phase == valueConflict }

// Uncertain reports whether nobody can say if it was published before others did.
func (p *Publish) Uncertain() bool { return p.phase == valueUncertain }

// Next implements [Machine].
func (p *Publish) Next(mono.Time) Op {
	switch p.phase {
	case valueLooking, valueDoubting:
		return Op{Kind: Load, Off: p.cfg.Off}
	case valueSettling:
		return p.swap(naming(p.cur, SlotOf(p.cur)))
	case valueJudging:
		return Op{Kind: Read, Off: p.cfg.slot(SlotOf(p.cur)), Len: 8, Buf: p.cfg.SlotSize}
	case valueWriting:
		return Op{Kind: Write, Off: p.cfg.slot(p.slot), Len: p.cfg.SlotSize}
	case valueSwapping:
		return p.swap(naming(p.cur, p.slot))
	default:
		return Op{}
	}
}

func (p *Publish) swap(to uint64) Op {
	return Op{Kind: CompareSwap, Off: p.cfg.Off, Compare: p.cur, Operand: to}
}

// Done implements [Machine].
func (p *Publish) Done(_ mono.Time, r Result) {
	switch p.phase {
	case valueLooking:
		p.cur = r.Word
		if p.doubt && p.cur == p.from {
			p.phase = valueSettling
			return
		}
		p.settled()
	case valueSettling:
		if r.Word == p.cur {
			r.Word = naming(p.cur, SlotOf(p.cur))
		}
		p.cur = r.Word
		p.settled()
	case valueJudging:
		switch {
		case r.Word > p.token:
			p.phase = valueDoubting
		case p.written:
			p.phase = valueSwapping
		default:
			p.phase = valueWriting
		}
	case valueDoubting:
		if r.Word == p.cur {
			p.phase = valueFenced
			return
		}
		p.cur = r.Word
		p.judge()
	case valueWriting:
		p.written, p.phase = true, valueSwapping
	case valueSwapping:
		p.swapped(r.Word)
	default:
	}
}

// settled goes on when no earlier swap can take effect any more: the slot that is
// not the current one is free.
func (p *Publish) settled() {
	p.doubt, p.from, p.to = false, 0, 0
	p.slot = 2 * p.writer
	if SlotOf(p.cur) == p.slot {
		p.slot++
	}
	p.judge()
}

func (p *Publish) judge() {
	p.phase = valueJudging
	if p.only && VersionOf(p.cur) != p.version {
		p.phase = valueConflict
	}
}

func (p *Publish) swapped(found uint64) {
	to := naming(p.cur, p.slot)
	doubt := p.doubt
	p.doubt, p.from, p.to = false, 0, 0
	switch {
	case found == p.cur, doubt && found == to:
		p.cur, p.phase = to, valueIdle
	case doubt && VersionOf(found) > VersionOf(to):
		p.cur, p.phase = found, valueUncertain
	default:
		p.cur = found
		p.judge()
	}
}

// Unknown implements [Machine]: what was written goes to a slot that nobody reads, so
// it can be written again; a swap can be tried again, since no word comes twice.
func (p *Publish) Unknown(mono.Time) {
	if p.phase == valueSwapping {
		p.doubt, p.from, p.to = true, p.cur, naming(p.cur, p.slot)
	}
}
