package chaostest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gohixl/hixl"
)

// Layout of a store: words, what is read and never changes, and a slot for each of
// those who write to it.
const (
	fans      = 4 // that write to a node, and that it writes to
	countAt   = 0
	constAt   = 4096
	constSize = 4096
	slotAt    = constAt + constSize
	slotSize  = 6000
	slotStep  = 6144
	storeSize = slotAt + fans*slotStep
)

const rights = hixl.LocalWrite | hixl.RemoteRead | hixl.RemoteWrite | hixl.RemoteAtomic

// store is a region that others write to. Its memory stays when the region is gone,
// and its node dead, to be looked at.
type store struct {
	n      int // number, by which its contents differ
	b      []byte
	region *hixl.Region
	d      hixl.Descriptor
	gone   []byte // what it was when nothing could land any more
	// slots are what those who write have left, once fenced; nil is nothing, or
	// unknown while a write is under way.
	slots [fans][]byte
	busy  [fans]int
	by    [fans]string // what left it
	// adds that were acknowledged, and that may have been executed.
	acked, unknown uint64
	seen           map[uint64]bool // by adds
}

func newStore(n int, c *hixl.Context) (*store, error) {
	s := &store{n: n, b: make([]byte, storeSize), seen: map[uint64]bool{}}
	for i := range constSize {
		s.b[constAt+i] = s.constant(i)
	}
	for i := range s.slots {
		s.slots[i] = make([]byte, slotSize)
	}
	var err error
	if s.region, err = c.Register(s.b, rights); err == nil {
		s.d = c.Describe(s.region)
	}
	return s, err
}

// constant is byte i of what is read.
func (s *store) constant(i int) byte { return byte(s.n*37 + i*11 + i>>8) }

func (s *store) slot(k int) []byte { return s.b[slotAt+k*slotStep:][:slotSize] }

// end notes that nothing may land any more.
func (s *store) end() { s.gone = bytes.Clone(s.b) }

// check looks at what must hold at the end, when nobody is at work.
func (s *store) check() (errs []error) {
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("store %d: "+format, append([]any{s.n}, args...)...))
	}
	if s.gone != nil && !bytes.Equal(s.gone, s.b) {
		bad("it changed, from byte %d on, when its region was gone", differ(s.gone, s.b))
	}
	for i := range constSize {
		if s.b[constAt+i] != s.constant(i) {
			bad("byte %d of what is only read has changed", i)
			break
		}
	}
	for k := range s.slots {
		if err := s.slotErr(k); err != nil {
			errs = append(errs, err)
		}
	}
	if v := binary.NativeEndian.Uint64(s.b[countAt:]); v < s.acked || v > s.acked+s.unknown {
		bad("the count is %d; %d were acknowledged and %d may have been executed", v, s.acked, s.unknown)
	}
	return errs
}

// slotErr looks whether a slot is what it was when what had been written to it was
// fenced.
func (s *store) slotErr(k int) error {
	want := s.slots[k]
	if want == nil || s.busy[k] > 0 || bytes.Equal(want, s.slot(k)) {
		return nil
	}
	return fmt.Errorf("store %d: slot %d changed, from byte %d on, after it was fenced: %s", s.n, k, differ(want, s.slot(k)), s.by[k])
}

func differ(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// over has ended: it makes polls of calls that wait.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// typed reports whether an error is one that callers can act on.
func typed(err error) bool {
	var t *hixl.TransferError
	var r *hixl.RegionError
	var p *hixl.PeerError
	var c *hixl.ConnError
	return errors.As(err, &t) || errors.As(err, &r) || errors.As(err, &p) || errors.As(err, &c) || errors.Is(err, hixl.ErrBusy)
}
