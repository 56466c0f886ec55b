package xdp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of ethtool(8)'s interface.
const ethtoolGetChannels = 0x3C

// ethtoolChannels is struct ethtool_channels.
type ethtoolChannels struct {
	cmd                             uint32
	maxRx, maxTx, maxOther, maxBoth uint32
	rx, tx, other, both             uint32
}

// channels asks the driver for the number of receive queues in use; 0 when it does
// not tell.
func channels(name string) int {
	ch := ethtoolChannels{cmd: ethtoolGetChannels}
	if ethtool(name, unsafe.Pointer(&ch)) != nil {
		return 0
	}
	return int(ch.rx + ch.both)
}

// ethtool makes one request about a link.
func ethtool(name string, request unsafe.Pointer) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	ifr := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: request}
	copy(ifr.name[:unix.IFNAMSIZ-1], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifr))); errno != 0 {
		return errno
	}
	return nil
}
