package pages

import (
	"errors"

	"golang.org/x/sys/unix"
)

func pageSize() int { return unix.Getpagesize() }

func lock(b []byte) error {
	err := unix.Mlock(b)
	if err == nil {
		return nil
	}
	e := &PinError{Len: len(b), Err: err}
	var limit unix.Rlimit
	if (errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAGAIN)) && unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil && limit.Cur != unix.RLIM_INFINITY {
		e.Limit, e.Limited = limit.Cur, true
	}
	return e
}

// unlock unlocks what is locked, which does not fail. Pages are wider than what the Go
// memory in them was allocated as, so they are named by number.
func unlock(r pageRange) { _, _, _ = unix.Syscall(unix.SYS_MUNLOCK, r.from, r.to-r.from, 0) }
