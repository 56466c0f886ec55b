package mr

import "errors"

// SGE is a scatter/gather element of a work request: Length bytes from address
// Addr of the region that LKey names.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// Span is a checked range of a region. It holds nothing: Acquire it for as long
// as its bytes are moved. The zero Span is none.
type Span struct {
	Region *Region
	Off    uint64 // into Region.Memory()
	Len    uint32
	Remote bool // found by an rkey
}

// Acquire lends the span's region, by AcquireRemote if an rkey led to it. Each
// true is followed by one Release.
func (s Span) Acquire() bool {
	if s.Remote {
		return s.Region.AcquireRemote()
	}
	return s.Region.Acquire()
}

// Usable reports whether Acquire would lend the span's region now. For who holds
// it already: a loan keeps the memory, not the right to go on using it.
func (s Span) Usable() bool {
	barred := uint64(revoked)
	if s.Remote {
		barred |= invalid
	}
	return s.Region.state.Load()&barred == 0
}

// Release ends one Acquire.
func (s Span) Release() { s.Region.Release() }

// Bytes is the direct view of the span, nil when the CPU cannot address it.
// Only to be touched while acquired.
func (s Span) Bytes() []byte {
	v := s.Region.view
	if v == nil {
		return nil
	}
	o := s.Off - s.Region.memOff
	return v[o : o+uint64(s.Len) : o+uint64(s.Len)]
}

// Sub returns n bytes of the span from off on. It panics when they are not all
// inside.
func (s Span) Sub(off, n uint32) Span {
	if off > s.Len || n > s.Len-off {
		panic("mr: Sub beyond the span")
	}
	s.Off += uint64(off)
	s.Len = n
	return s
}

// Remote checks a peer's access to n bytes at va and tells where they are. Any
// arguments are safe. The error, when there is one, is a Fault, which costs no
// allocation; Explain makes more of it. A peer's request for zero bytes needs
// no valid key (§4.11): the caller does not ask then, or asks and means it
// (FLUSH, §6.1).
func (pd *PD) Remote(rkey uint32, va uint64, n uint32, need Access) (Span, error) {
	r, f := pd.t.find(rkey, kindR)
	if f == 0 {
		f = r.check(pd, va, n, need, revoked|invalid)
	}
	if f != 0 {
		return Span{}, f
	}
	return Span{Region: r, Off: r.memOff + (va - r.base), Len: n, Remote: true}, nil
}

// Local checks an element of a local work request; need is LocalWrite where
// bytes will land there, 0 where they are only read. The error is a Fault, as
// with Remote.
func (pd *PD) Local(s SGE, need Access) (Span, error) {
	r, f := pd.t.find(s.LKey, 0)
	if f == 0 {
		f = r.check(pd, s.Addr, s.Length, need, revoked)
	}
	if f != 0 {
		return Span{}, f
	}
	return Span{Region: r, Off: r.memOff + (s.Addr - r.base), Len: s.Length}, nil
}

// check applies the rules of §6 after the key was found.
func (r *Region) check(pd *PD, va uint64, n uint32, need Access, barred uint64) Fault {
	switch {
	case r.state.Load()&barred != 0:
		return FaultRevoked
	case r.pd != pd:
		return FaultPD
	case r.access&need != need:
		return FaultPermission
	case va < r.base || uint64(n) > r.size || va-r.base > r.size-uint64(n): // never adds, so never overflows
		return FaultBounds
	}
	return 0
}

// InvalidateRemote executes a peer's SEND with invalidate (§4.10): it ends
// remote access by rkey for good, if the region is of this domain and grants
// RemoteInvalidate. The region stays valid for local use and must still be
// deregistered. The error is a Fault, as with Remote; a second invalidation of
// the same key gives FaultRevoked.
func (pd *PD) InvalidateRemote(rkey uint32) error {
	r, f := pd.t.find(rkey, kindR)
	if f == 0 {
		f = r.check(pd, r.base, 0, RemoteInvalidate, revoked|invalid)
	}
	if f == 0 && !r.Invalidate() { // somebody was faster
		f = FaultRevoked
	}
	if f != 0 {
		return f
	}
	return nil
}

// Explain makes a full error of what Remote, Local or InvalidateRemote returned
// for the same arguments; op names the attempt, such as "remote write". Errors
// that are no Fault, nil included, come back as they are.
func (pd *PD) Explain(err error, op string, key uint32, addr, n uint64, need Access) error {
	var f Fault
	if !errors.As(err, &f) {
		return err
	}
	e := &AccessError{Op: op, Fault: f, Key: key, Addr: addr, Len: n, Need: need}
	r, lookup := pd.t.find(key, pd.t.perm.open(key)&kindR)
	if lookup == 0 && r.pd == pd { // another domain's region is nobody's business
		e.Base, e.Size, e.Have = r.base, r.size, r.access
	}
	return e
}
