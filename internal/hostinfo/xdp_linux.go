package hostinfo

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

func xdpCheck() Check { return judgeXDP(probeXDP(), effective()) }

// probeXDP opens an AF_XDP socket and closes it.
func probeXDP() error {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		closeAll(fd)
	}
	return err
}

// judgeXDP weighs what opening a socket gave against what the process may do.
func judgeXDP(err error, caps capabilities) Check {
	c := Check{Name: "af_xdp", State: OK, Value: "sockets open, programs may be loaded"}
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		c.Value = "not permitted"
		return c.needs(Missing, costXDP, "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF")
	case err != nil:
		c.Value = fmt.Sprintf("no such socket: %v", err)
		return c.needs(Missing, costXDP, "Linux 4.18 or newer built with CONFIG_XDP_SOCKETS")
	case !caps.loadsXDP():
		c.Value = "sockets open, but programs may not be loaded"
		return c.needs(Limited, costXDP, "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF")
	}
	return c
}
