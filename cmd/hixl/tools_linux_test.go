package main

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/internal/hosttest"
)

// insideEnv tells a run of this test in its own network from the one that starts it.
const insideEnv = "HIXL_TEST_OWN_NETWORK"

// Every tool over IPv6, where loopback has one address only: so in a network of
// this test's own, whose loopback has two more.
func TestToolsOverIPv6(t *testing.T) {
	if os.Getenv(insideEnv) == "" {
		runInOwnNetwork(t)
		return
	}
	upLoopback(t)
	hosttest.NeedIPv6(t)
	addLoopback(t, netip.MustParseAddr("fd00::1"))
	addLoopback(t, netip.MustParseAddr("fd00::2"))
	for _, c := range []struct{ server, client, want string }{
		{"pingpong rc -n 10 -c --bind fd00::2", "pingpong rc -n 10 -c fd00::2", "10 iters in "},
		{"pingpong ud -n 10 -s 1000 -c --bind fd00::2", "pingpong ud -n 10 -s 1000 -c fd00::2", "10 iters in "},
		{"perf write_bw -n 20 -q 2 --bind fd00::2", "perf write_bw -n 20 -q 2 fd00::2", " 65536      40 "},
		{"perf write_bw -R -n 20", "perf write_bw -R -n 20 fd00::2", " 65536      20 "},
		{"perf read_lat -R -s 100 -n 20", "perf read_lat -R -s 100 -n 20 fd00::2", " 100     20 "},
		{"perf send_bw -R -q 2 -b -s 100 -n 20", "perf send_bw -R -q 2 -b -s 100 -n 20 fd00::2", " 100        40 "},
		{"perf atomic_bw -R -n 20", "perf atomic_bw -R -n 20 fd00::2", " 8          20 "},
		{"perf send_bw -R -c UD -q 2 -b -s 100 -n 20", "perf send_bw -R -c UD -q 2 -b -s 100 -n 20 fd00::2", " 100        40 "},
		{"perf send_lat -R -c UD -s 100 -n 20", "perf send_lat -R -c UD -s 100 -n 20 fd00::2", " 100     20 "},
		{"rping -s -a fd00::2 -C 3 -v -V", "rping -c -a fd00::2 -C 3 -v -V", "ping data: rdma-ping-2: CDEF"},
		{"ucmatose -c 2", "ucmatose -c 2 -s fd00::2", "return status 0\n"},
	} {
		t.Run(c.server, func(t *testing.T) {
			s, cl := pair(t, words(c.server+" --local fd00::2 --patience 2m"), words(c.client+" --local fd00::1 --patience 2m"))
			require.Zero(t, s.code, s.err)
			require.Zero(t, cl.code, cl.err)
			require.Contains(t, cl.out, c.want)
		})
	}
}

// runInOwnNetwork runs the calling test again, in a new network namespace.
func runInOwnNetwork(t *testing.T) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), insideEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("needs root: a network namespace of its own")
	}
	require.NoError(t, err, "%s", out)
	if said := string(out); strings.Contains(said, "--- SKIP: "+t.Name()) {
		t.Skip(said)
	}
	require.Contains(t, string(out), "--- PASS: "+t.Name())
}

// upLoopback brings a new network's loopback interface up.
func upLoopback(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	require.NoError(t, err)
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo))
}

// addLoopback gives it an IPv6 address more, and waits until it can be used.
func addLoopback(t *testing.T, addr netip.Addr) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	request := struct { // struct in6_ifreq
		addr      [16]byte
		prefixLen uint32
		index     int32
	}{addr.As16(), 128, 1}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFADDR, uintptr(unsafe.Pointer(&request)))
	require.Zero(t, errno)
	require.Eventually(t, func() bool {
		c, err := net.ListenUDP("udp6", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
		return err == nil && c.Close() == nil
	}, 2*time.Minute, time.Millisecond)
}
