package hostinfo

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mmsgCheck() Check {
	c := Check{Name: "mmsg", State: OK, Value: "sendmmsg and recvmmsg work"}
	if err := probeMMsg(); err != nil {
		c.Value = fmt.Sprintf("sendmmsg or recvmmsg refused: %v", err)
		return c.needs(Missing, costMMsg, "Linux 3.0 or newer, and no sandbox that hides the system calls")
	}
	return c
}

// probeMMsg receives from a socket that has nothing to give, and sends no
// messages.
func probeMMsg() error {
	fd, err := socket(unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer closeAll(fd)
	var m mmsghdr
	for _, call := range []struct{ nr, n uintptr }{{unix.SYS_RECVMMSG, 1}, {unix.SYS_SENDMMSG, 0}} {
		_, _, errno := unix.Syscall6(call.nr, uintptr(fd), uintptr(unsafe.Pointer(&m)), call.n, unix.MSG_DONTWAIT, 0, 0)
		if errno != 0 && errno != unix.EAGAIN {
			return errno
		}
	}
	return nil
}
