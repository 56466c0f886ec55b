package nic

import (
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nap sleeps for so long and the slack of the system's timers, or until a signal. The
// runtime's own timers sleep for a millisecond at least. It is not told of the sleep:
// each time it would start another thread to look for work meanwhile. So goroutines that
// the batch before has made ready go first, and what becomes ready later waits for the
// end, unless another processor takes it.
func nap(d time.Duration) {
	runtime.Gosched()
	ts := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}
