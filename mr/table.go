package mr

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// MaxRegions is the largest number of regions of one table, set by the width of
// the slot in a key.
const MaxRegions = maxSlots

// Config of a Table. The zero value is useful.
type Config struct {
	// MaxRegions limits the regions that live at one time: 1 to MaxRegions,
	// which is also the default for 0.
	MaxRegions int
	// Rand gives the table's secret and the regions' base addresses. Default
	// crypto/rand. Anything predictable makes keys predictable: tests only. It
	// is read under the table's lock.
	Rand io.Reader
}

// Table holds all regions of one NIC.
type Table struct {
	perm *permutation // set once
	rand io.Reader    // read under mu

	slots slots // get is lock-free, the rest guarded by mu

	mu    sync.Mutex
	live  int    // regions with a slot; guarded by mu
	limit int    // set once
	pds   uint64 // domains ever made; guarded by mu
}

// NewTable makes an empty table. It fails with an error that unwraps to
// ErrConfig, or when Rand does.
func NewTable(c Config) (*Table, error) {
	if c.MaxRegions == 0 {
		c.MaxRegions = MaxRegions
	}
	if c.MaxRegions < 1 || c.MaxRegions > MaxRegions {
		return nil, fmt.Errorf("mr: MaxRegions is %d, give 1 to %d or 0 for the most: %w",
			c.MaxRegions, MaxRegions, ErrConfig)
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	p, err := newPermutation(c.Rand)
	if err != nil {
		return nil, err
	}
	return &Table{perm: p, rand: c.Rand, limit: c.MaxRegions}, nil
}

// Live is the number of regions that hold a slot, those still waiting for lent
// spans included.
func (t *Table) Live() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// AllocPD makes a protection domain.
func (t *Table) AllocPD() *PD {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pds++
	return &PD{t: t, id: t.pds}
}

// find returns the region of a key of the given kind. It takes no lock.
func (t *Table) find(key, kind uint32) (*Region, Fault) {
	x := t.perm.open(key)
	r := t.slots.get(x >> genBits & (maxSlots - 1))
	switch {
	case r == nil || r.plain != x&^kindR: // the generation is part of it
		return nil, FaultKey
	case x&kindR != kind:
		return r, FaultKind
	}
	return r, 0
}

// insert gives r a slot and its keys and makes it findable. The caller has
// prepared everything else of r and holds mu.
func (t *Table) insert(r *Region) error {
	if t.live >= t.limit {
		return t.fullError()
	}
	i, ok := t.slots.take()
	if !ok {
		return t.fullError()
	}
	s := t.slots.at(i)
	for ok := false; !ok; { // at most three times: one number of all seals to 0
		s.gen = (s.gen + 1) & genMask
		r.plain = i<<genBits | s.gen
		r.lkey, r.rkey = t.perm.seal(r.plain), t.perm.seal(r.plain|kindR)
		ok = r.lkey != 0 && r.rkey != 0 // key 0 is reserved invalid, §6
	}
	t.live++
	s.region.Store(r)
	return nil
}

func (t *Table) fullError() error {
	return &RegisterError{
		What: "one more region", Allowed: fmt.Sprintf("%d at a time", t.limit),
		Advice: "deregister some, register larger ones, or raise MaxRegions", sentinel: ErrTooMany,
	}
}

// unlink makes r unfindable. Its slot stays taken until remove.
func (t *Table) unlink(r *Region) { t.slots.at(r.slot()).region.Store(nil) }

// remove frees the slot of r, which was unlinked.
func (t *Table) remove(r *Region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slots.free.push(r.slot())
	t.live--
}

// baseBits bounds the random base addresses: they look like user-space
// addresses, and no region of less than 2^63 bytes wraps from there.
const baseBits = 47

// base draws a page-aligned base address, never in the first 4 GiB. The caller
// holds mu.
func (t *Table) base() (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(t.rand, b[:]); err != nil {
		return 0, fmt.Errorf("mr: reading randomness for a base address: %w", err)
	}
	x := binary.LittleEndian.Uint64(b[:]) & (1<<baseBits - 1) &^ (pageSize - 1)
	return x | 1<<32, nil
}
