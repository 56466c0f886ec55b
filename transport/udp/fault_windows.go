package udp

import (
	"syscall"

	"golang.org/x/sys/windows"
)

func fault(errno syscall.Errno, _ bool) faultKind {
	switch errno {
	case windows.WSAEWOULDBLOCK:
		return faultBusy
	case windows.WSAENOBUFS, windows.ERROR_NOT_ENOUGH_MEMORY:
		return faultFull
	case windows.WSAEINTR, windows.WSAECONNREFUSED, windows.WSAECONNRESET:
		return faultEarlier
	case windows.WSAENETUNREACH, windows.WSAEHOSTUNREACH, windows.WSAENETDOWN, windows.WSAEHOSTDOWN, windows.WSAENETRESET,
		windows.WSAEACCES: // a packet filter
		return faultUnreachable
	case windows.WSAEMSGSIZE:
		return faultSize
	}
	return faultOther
}
