package bench

import "time"

// copyMessages is the memcpy baseline: one goroutine copies messages from source
// to destination, walking both as a cell does. It returns how many.
func copyMessages(dst, src []byte, w *walker, d time.Duration, least uint64) uint64 {
	size := w.l.size
	every := uint64(max(1, (64<<10)/size))
	var n uint64
	for start := time.Now(); n < least || n%every != 0 || time.Since(start) < d; n++ {
		to, from := w.next()
		copy(dst[to:to+size], src[from:from+size])
	}
	return n
}
