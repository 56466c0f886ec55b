//go:build !windows

package udp

import "syscall"

func fault(errno syscall.Errno, train bool) faultKind {
	switch errno {
	case syscall.EAGAIN:
		return faultBusy
	case syscall.ENOBUFS, syscall.ENOMEM:
		return faultFull
	case syscall.EINTR, syscall.ECONNREFUSED:
		return faultEarlier
	case syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN, syscall.ENODEV, syscall.ENXIO,
		syscall.EPERM: // a packet filter
		return faultUnreachable
	case syscall.EMSGSIZE:
		return faultSize
	case syscall.EIO, syscall.EINVAL, syscall.EOPNOTSUPP, syscall.ENOPROTOOPT:
		if train {
			return faultTrain
		}
	}
	return faultOther
}
