package hostinfo

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// capabilities is a set of Linux capabilities, a bit for each number.
type capabilities uint64

// effective returns the capabilities this process acts with.
func effective() capabilities {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	return parseCapabilities(string(b))
}

func parseCapabilities(status string) capabilities {
	v, _ := field(status, "CapEff")
	n, err := strconv.ParseUint(v, 16, 64)
	if err != nil {
		return 0
	}
	return capabilities(n)
}

func (c capabilities) has(n int) bool { return c>>n&1 == 1 }

// loadsXDP reports whether XDP programs and their sockets may be set up.
// CAP_SYS_ADMIN stands for CAP_BPF on kernels before 5.8.
func (c capabilities) loadsXDP() bool {
	return c.has(unix.CAP_NET_RAW) && c.has(unix.CAP_NET_ADMIN) && (c.has(unix.CAP_BPF) || c.has(unix.CAP_SYS_ADMIN))
}
