package engine

import (
	"os"
	"syscall"
)

// mapped reports whether all of a range is mapped: msync has nothing to do with
// MS_ASYNC but to look.
func mapped(x span) bool {
	page := uint64(os.Getpagesize())
	start := x.addr &^ (page - 1)
	_, _, errno := syscall.Syscall(syscall.SYS_MSYNC, uintptr(start), uintptr(x.addr+x.n-start), syscall.MS_ASYNC)
	return errno == 0
}
