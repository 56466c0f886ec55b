package device

// Contains reports whether n bytes at off lie within size bytes, without
// overflow for any arguments.
func Contains(size, off, n uint64) bool { return off <= size && n <= size-off }

// CheckVec returns a *RangeError for the first piece that does not lie within
// size bytes, or nil. Backends call it before they move anything.
func CheckVec(size uint64, v []Vec) error {
	for i := range v {
		if n := uint64(len(v[i].B)); !Contains(size, v[i].Off, n) {
			return &RangeError{Off: v[i].Off, Len: n, Size: size}
		}
	}
	return nil
}

// CheckAtomic returns the typed error for an operation on a memory of size
// bytes at address addr that is out of range, misaligned or of unknown kind, or
// nil. Backends call it before they execute anything.
func CheckAtomic(size, addr uint64, op *AtomicOp) error {
	switch {
	case op.Kind < CompareSwap || op.Kind > Store:
		return &KindError{Kind: op.Kind}
	case !Contains(size, op.Off, WordSize):
		return &RangeError{Off: op.Off, Len: WordSize, Size: size}
	case (addr+op.Off)%WordSize != 0:
		return &AlignError{Off: op.Off, Addr: addr + op.Off}
	}
	return nil
}
