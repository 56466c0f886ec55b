package hosttest

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

// loopback6 is the line of ::1 in Linux' table of IPv6 addresses, up to the index
// of its interface.
const loopback6 = "00000000000000000000000000000001 "

// NeedIPv6 skips the test on a host without ::1, as containers often are. A host
// that lists the address and gives no socket on it fails the test. There is one such
// address for everybody and one owner of its port 4791: the test has it for itself
// until it ends, and waits for others that do. Call it before opening anything.
func NeedIPv6(t testing.TB) {
	t.Helper()
	c, err := net.ListenPacket("udp6", "[::1]:0")
	if err == nil {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		takeTurn(t, "ipv6")
		return
	}
	if table, _ := os.ReadFile("/proc/thread-self/net/if_inet6"); strings.Contains(string(table), loopback6) {
		t.Fatalf("this host has ::1, and no socket on it: %v", err)
	}
	t.Skipf("needs IPv6 on loopback (hixl info says how to get it): %v", err)
}

// NeedLinux skips a test whose subject came with a later kernel than this host's,
// or which is not on Linux at all. On a newer one the subject has to be there.
func NeedLinux(t testing.TB, major, minor int) {
	t.Helper()
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Skipf("needs Linux %d.%d: %v", major, minor, err)
	}
	var a, b int
	if _, err := fmt.Sscanf(string(release), "%d.%d", &a, &b); err != nil {
		t.Fatalf("kernel release %q: %v", release, err)
	}
	if a < major || (a == major && b < minor) {
		t.Skipf("needs Linux %d.%d, this is %d.%d", major, minor, a, b)
	}
}
