//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// hostDevice is this process's network card on the bridge.
const hostDevice = "hixl0"

// framesQueued is how many frames a socket or card holds for a slow reader.
const framesQueued = 8192

// socketBuffer is the memory for them, in bytes, as far as the kernel allows.
const socketBuffer = 32 << 20

// prepareNamespace gives the new namespaces what they start without.
func prepareNamespace() error {
	// Mounts made here are not to show outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	for knob, value := range map[string]string{
		"net/unix/max_dgram_qlen":          fmt.Sprint(framesQueued),
		"net/ipv6/conf/all/disable_ipv6":   "0",
		"net/ipv6/conf/all/accept_dad":     "0",
		"net/ipv6/conf/default/accept_dad": "0",
	} {
		if err := os.WriteFile("/proc/sys/"+knob, []byte(value), 0); err != nil {
			return err
		}
	}
	return nil
}

// openTap makes this host's network card; what is read from the file is what the
// host sends.
func openTap(name string) (*os.File, error) {
	fd, err := openTun()
	if err != nil {
		return nil, err
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making network card %s: %w", name, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil // after TUNSETIFF, or it cannot be polled
}

// openTun opens the device that makes network cards. A container may have no file
// for it.
func openTun() (int, error) {
	const (
		path         = "/dev/net/tun"
		major, minor = 10, 200
	)
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENOENT) {
		_ = os.MkdirAll(filepath.Dir(path), 0o755) // Mknod says what is wrong
		if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(major, minor))); err != nil {
			return -1, fmt.Errorf("making %s: %w", path, err)
		}
		fd, err = unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	}
	if err != nil {
		return -1, fmt.Errorf("%s: %w", path, err)
	}
	return fd, nil
}

// configure gives the host its addresses.
func configure(ctx context.Context, mtu int) error {
	script := fmt.Sprintf(`link set lo up
link set %[1]s mtu %[2]d txqueuelen %[3]d
addr add %[4]s/24 dev %[1]s
link set %[1]s up
addr add %[5]s/64 dev %[1]s nodad
`, hostDevice, mtu, framesQueued, Host4, Host6)
	cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s", err, lastLines(string(out), 3))
	}
	return nil
}

// cable makes two connected ends that carry frames: one for the switch, one to be
// given to a guest.
func cable() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, fd := range fds {
		// Without the right to more, the kernel's limit has to do.
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, socketBuffer) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, socketBuffer)
		}
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "cable"), os.NewFile(uintptr(fds[1]), "cable")
	defer ours.Close()
	c, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return c.(*net.UnixConn), theirs, nil
}
