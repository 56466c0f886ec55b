//go:build darwin || freebsd

package udp

import "golang.org/x/sys/unix"

// The ICRC covers the flag on IPv4 only.
func dontFragment(fd uintptr, v6 bool) error {
	if v6 {
		return nil
	}
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_DONTFRAG, 1)
}
