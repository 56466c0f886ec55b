package nic

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps for so long and the slack of the system's timers, or until a signal. The
// runtime's own timers sleep for a millisecond at least.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil)
}
