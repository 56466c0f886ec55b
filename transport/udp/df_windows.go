package udp

import "golang.org/x/sys/windows"

// ipDontFragment is IP_DONTFRAGMENT of ws2ipdef.h.
const ipDontFragment = 14

// The ICRC covers the flag on IPv4 only.
func dontFragment(fd uintptr, v6 bool) error {
	if v6 {
		return nil
	}
	return windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IP, ipDontFragment, 1)
}
