//go:build !linux

package hostinfo

import (
	"errors"
	"runtime"
)

// platformChecks says which parts of the fast path exist on Linux only.
func platformChecks() []Check {
	only := func(name, what, cost string) Check {
		c := Check{Name: name, Value: what + " exists on Linux only; this is " + runtime.GOOS}
		return c.needs(Missing, cost, "run on Linux")
	}
	return []Check{
		only("udp_gso", "UDP segmentation", costGSO),
		only("udp_gro", "UDP coalescing", costGRO),
		only("mmsg", "sendmmsg and recvmmsg", costMMsg),
		only("af_xdp", "AF_XDP", costXDP),
	}
}

// portHolders cannot be asked for here.
func portHolders(uint16) ([]holder, error) { return nil, errors.ErrUnsupported }

// socketOwner cannot be asked for here.
func socketOwner(string) string { return "another process" }
