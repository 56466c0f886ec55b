package device

// waiter turns a completion into something to wait for.
type waiter chan error

// MemoryDone hands the error to the one who waits; the channel has room for it.
func (w waiter) MemoryDone(_ uint64, err error) { w <- err }

// WriteAt copies b to offset off of m and returns when the bytes are there. It
// blocks, so it is for set-up, verification and tools, not for the data path,
// and not on the goroutine that drives the memory.
func WriteAt(m Memory, b []byte, off uint64) error {
	w := make(waiter, 1)
	done, err := m.WriteV([]Vec{{Off: off, B: b}}, 0, w)
	if !done {
		err = <-w
	}
	return err
}

// ReadAt copies len(b) bytes from offset off of m and returns when they are in
// b. It blocks like WriteAt.
func ReadAt(m Memory, b []byte, off uint64) error {
	w := make(waiter, 1)
	done, err := m.ReadV([]Vec{{Off: off, B: b}}, 0, w)
	if !done {
		err = <-w
	}
	return err
}
