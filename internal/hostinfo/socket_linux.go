package hostinfo

import "golang.org/x/sys/unix"

// loopback is where the probes talk to themselves.
var loopback = [4]byte{127, 0, 0, 1}

// receiveTimeout bounds how long a probe waits for a packet it sent over the
// loopback interface, in microseconds; none takes that long unless it is lost.
const receiveTimeout = 3_000_000

// socket opens an IPv4 socket whose receives give up after receiveTimeout.
func socket(kind, proto int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return -1, err
	}
	tv := unix.NsecToTimeval(receiveTimeout * 1000)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		unix.Close(fd) //nolint:errcheck // the first error is the one to report
		return -1, err
	}
	return fd, nil
}

// udpPair opens a sender and a receiver bound to the loopback address, and
// says where the receiver is.
func udpPair() (tx, rx int, to *unix.SockaddrInet4, err error) {
	rx, err = socket(unix.SOCK_DGRAM, 0)
	if err != nil {
		return -1, -1, nil, err
	}
	to, err = bindLoopback(rx)
	if err == nil {
		tx, err = socket(unix.SOCK_DGRAM, 0)
	}
	if err != nil {
		unix.Close(rx) //nolint:errcheck // the first error is the one to report
		return -1, -1, nil, err
	}
	return tx, rx, to, nil
}

func bindLoopback(fd int) (*unix.SockaddrInet4, error) {
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback}); err != nil {
		return nil, err
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return nil, err
	}
	at, ok := sa.(*unix.SockaddrInet4)
	if !ok {
		return nil, unix.EAFNOSUPPORT
	}
	return at, nil
}

func closeAll(fds ...int) {
	for _, fd := range fds {
		unix.Close(fd) //nolint:errcheck // probes hold nothing that could be lost
	}
}
