package udp

import (
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// inNamespace moves the test to a network namespace of its own, with only the
// loopback interface, up and of the given MTU. It needs root, and says so when it
// skips.
func inNamespace(t *testing.T, mtu int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a network namespace of its own")
	}
	// Never unlocked: the thread ends with the test's goroutine, and the
	// namespace with its last socket.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("needs CAP_SYS_ADMIN: %v", err)
	}
	setLoopback(t, mtu)
}

func setLoopback(t *testing.T, mtu int) {
	t.Helper()
	fd := controlSocket(t)
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	require.NoError(t, err)
	ifr.SetUint32(uint32(mtu))
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCSIFMTU, ifr))
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr))
}

func controlSocket(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	return fd
}

// ethtool sends one ethtool request, about the loopback interface.
func ethtool(fd int, request unsafe.Pointer) error {
	type ifreq struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	ifr := ifreq{data: request}
	copy(ifr.name[:], "lo")
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifr))); errno != 0 {
		return errno
	}
	return nil
}

// segmentInSoftware takes tx-udp-segmentation away from the loopback interface,
// so that the kernel cuts trains before they leave, as it does for a wire.
func segmentInSoftware(t *testing.T) {
	t.Helper()
	const (
		gstrings, gssetInfo, sfeatures = 0x1b, 0x37, 0x3b // ETHTOOL_*
		setFeatures                    = 4                // ETH_SS_FEATURES
		nameLen                        = 32               // ETH_GSTRING_LEN
	)
	fd := controlSocket(t)
	defer unix.Close(fd)
	info := struct {
		cmd, reserved uint32
		mask          uint64
		count         uint32
		_             uint32
	}{cmd: gssetInfo, mask: 1 << setFeatures}
	require.NoError(t, ethtool(fd, unsafe.Pointer(&info)))
	names := make([]byte, 12+int(info.count)*nameLen)
	head := (*[3]uint32)(unsafe.Pointer(&names[0]))
	head[0], head[1], head[2] = gstrings, setFeatures, info.count
	require.NoError(t, ethtool(fd, unsafe.Pointer(&names[0])))

	for bit := range int(info.count) {
		name := names[12+bit*nameLen:][:nameLen]
		if unix.ByteSliceToString(name) != "tx-udp-segmentation" {
			continue
		}
		change := struct {
			cmd, size uint32
			blocks    [8]struct{ valid, requested uint32 }
		}{cmd: sfeatures, size: (info.count + 31) / 32}
		change.blocks[bit/32].valid = 1 << (bit % 32)
		require.NoError(t, ethtool(fd, unsafe.Pointer(&change)))
		return
	}
	t.Fatal("the kernel knows no tx-udp-segmentation")
}
