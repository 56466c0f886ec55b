package mr

import (
	"fmt"
	"math"

	"github.com/gohixl/hixl/device"
)

// pageSize is the unit of base addresses, whatever the host's own page size is.
const pageSize = 4096

// Options of a registration. The zero value registers the whole memory for
// local reading.
type Options struct {
	// Off is the region's first byte in the memory.
	Off uint64
	// Len is its length in bytes; 0 means all from Off on, which makes an empty
	// region where Off is the memory's size.
	Len uint64
	// Access is what is allowed beside local reading.
	Access Access
	// IOVA, when given, is the address by which work requests and peers name
	// the first byte. It must be congruent to the memory's address modulo 8, so
	// that aligned words are aligned on both sides, and the region must not
	// wrap around 2^64. Default: a random page-aligned address plus the offset
	// of the first byte in its page; 0 with ZeroBased, which excludes IOVA and
	// needs a first byte that is 8-byte aligned.
	IOVA *uint64
}

// Register makes a region of a range of mem. The memory must stay valid until
// Deregister has returned nil; a memory that is a device.Retainer sees to that
// itself. Errors: *RegisterError, ErrPDClosed, device.ErrClosed, or a failure of
// Config.Rand.
func (pd *PD) Register(mem device.Memory, o Options) (*Region, error) {
	r := &Region{pd: pd, mem: mem, memOff: o.Off, size: o.Len, access: o.Access}
	if err := o.Access.check(); err != nil {
		return nil, err
	}
	if err := r.checkRange(); err != nil {
		return nil, err
	}
	if b := mem.Bytes(); b != nil {
		end := r.memOff + r.size
		r.view = b[r.memOff:end:end]
	}
	phase := device.AddressOf(mem) + o.Off
	if err := pd.enter(&pd.regions); err != nil {
		return nil, err
	}
	if err := retain(mem); err != nil {
		pd.leave(&pd.regions)
		return nil, err
	}
	if err := pd.t.admit(r, o, phase); err != nil {
		release(mem)
		pd.leave(&pd.regions)
		return nil, err
	}
	return r, nil
}

// checkRange fills in the length and refuses bytes that are not there.
func (r *Region) checkRange() error {
	have := r.mem.Size()
	if r.size == 0 && r.memOff <= have {
		r.size = have - r.memOff
	}
	if !device.Contains(have, r.memOff, r.size) {
		return &RegisterError{
			What:    fmt.Sprintf("%d bytes at offset %d", r.size, r.memOff),
			Allowed: fmt.Sprintf("a range of the memory's %d bytes", have),
			Advice:  "reduce Off or Len", sentinel: ErrBounds,
		}
	}
	return nil
}

// admit chooses the base address of r, whose first byte lies at phase, and puts
// it into the table.
func (t *Table) admit(r *Region, o Options, phase uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case o.Access&ZeroBased != 0:
		if o.IOVA != nil {
			return iovaError(fmt.Sprintf("ZERO_BASED and iova %#x", *o.IOVA), "one of the two", "leave one out")
		}
	case o.IOVA != nil:
		r.base = *o.IOVA
	default:
		b, err := t.base()
		if err != nil {
			return err
		}
		r.base = b + phase%pageSize
	}
	if err := r.checkBase(phase); err != nil {
		return err
	}
	return t.insert(r)
}

// checkBase refuses a base address that breaks alignment or wraps.
func (r *Region) checkBase(phase uint64) error {
	if (r.base-phase)%device.WordSize != 0 {
		return iovaError(fmt.Sprintf("iova %#x for memory at %#x", r.base, phase),
			"an iova congruent to the memory modulo 8",
			fmt.Sprintf("use one that ends in %d modulo 8, or start at an aligned byte", phase%device.WordSize))
	}
	if r.base > math.MaxUint64-r.size {
		return iovaError(fmt.Sprintf("iova %#x for %d bytes", r.base, r.size),
			fmt.Sprintf("an iova of at most %#x", math.MaxUint64-r.size), "use a lower one")
	}
	return nil
}

func iovaError(what, allowed, advice string) error {
	return &RegisterError{What: what, Allowed: allowed, Advice: advice, sentinel: ErrIOVA}
}

func retain(mem device.Memory) error {
	if r, ok := mem.(device.Retainer); ok {
		return r.Retain()
	}
	return nil
}

func release(mem device.Memory) {
	if r, ok := mem.(device.Retainer); ok {
		r.Release()
	}
}
