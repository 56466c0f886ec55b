package hostinfo

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// wantBuffer is the socket buffer, as the kernel reads it back (twice what was
// asked for), that holds a window of 1 to 2 MiB for several queue pairs.
const wantBuffer = 8 << 20

// direction is one of a socket's two buffers.
type direction struct {
	name, limit string // of the check, and of its limit below net.core
	force, set  int    // the socket options that grow it
	cost        string // of less than wantBuffer
}

var directions = []direction{
	{
		"receive_buffer", "rmem_max", unix.SO_RCVBUFFORCE, unix.SO_RCVBUF,
		"packets that find it full are dropped without a word and sent again: single packets take twice their size of it, small ones 1 KiB each",
	},
	{
		"send_buffer", "wmem_max", unix.SO_SNDBUFFORCE, unix.SO_SNDBUF,
		"a sender on a real link waits sooner; loopback does not care",
	},
}

func bufferChecks() []Check {
	checks := make([]Check, 0, len(directions))
	for i := range directions {
		checks = append(checks, directions[i].check())
	}
	return checks
}

func (d *direction) check() Check {
	limit := readNumber("/proc/sys/net/core/" + d.limit)
	got, forced, err := d.grow(wantBuffer / 2)
	c := Check{Name: d.name, State: OK}
	if err != nil {
		c.Value = fmt.Sprintf("cannot be set: %v", err)
		return c.needs(Unknown, d.cost, "see udp_gso")
	}
	how := "within"
	if forced {
		how = "by CAP_NET_ADMIN beyond"
	}
	c.Value = fmt.Sprintf("%s as the kernel counts, half of it usable, %s net.core.%s = %s", size(got), how, d.limit, size(limit))
	if got >= wantBuffer {
		return c
	}
	return c.needs(Limited, d.cost, fmt.Sprintf("sysctl -w net.core.%s=%d, or CAP_NET_ADMIN", d.limit, wantBuffer))
}

// grow asks for a buffer of n bytes and returns what the kernel then says it
// has, and whether privilege was used to go beyond the limit.
func (d *direction) grow(n int) (got int, forced bool, err error) {
	fd, err := socket(unix.SOCK_DGRAM, 0)
	if err != nil {
		return 0, false, err
	}
	defer closeAll(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, d.set, n); err != nil {
		return 0, false, err
	}
	got, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, d.set)
	if err != nil || got >= 2*n {
		return got, false, err
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, d.force, n) != nil {
		return got, false, nil
	}
	got, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, d.set)
	return got, true, err
}
