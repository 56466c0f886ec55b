package bench

import (
	"net"

	"golang.org/x/sys/unix"
)

// setCongestion asks for cubic and returns what the socket uses.
func setCongestion(c *net.TCPConn) string {
	raw, err := c.SyscallConn()
	if err != nil {
		return ""
	}
	var name string
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, wantedCongestion) // else the default stays, and is named
		name, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	})
	return name
}
