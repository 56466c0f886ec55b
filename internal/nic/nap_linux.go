package nic

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps for so long and the slack of the system's timers, or until a signal. The
// runtime's own timers sleep for a millisecond at least. Goroutines that the batch before
// has made ready go first: the call keeps the processor that they would wait for.
func nap(d time.Duration) {
	runtime.Gosched()
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil)
}
