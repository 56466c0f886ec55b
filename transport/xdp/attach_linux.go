package xdp

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport"
)

// steering is the program on the link and the map of sockets it steers to. Both go
// with the descriptors: when the process ends, however it ends, the kernel takes
// the program off the link.
type steering struct {
	sockets *ebpf.Map
	prog    *ebpf.Program
	link    link.Link
}

// load makes map and program, unattached.
func load(addrs []netip.Addr, queues int, multibuf bool) (*steering, error) {
	_ = rlimit.RemoveMemlock() // kernels before 5.11 count the map against it
	s := &steering{}
	var err error
	s.sockets, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: programName, Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: uint32(queues),
	})
	if err != nil {
		return nil, err
	}
	s.prog, err = ebpf.NewProgram(program(s.sockets, addrs, multibuf))
	if err != nil && multibuf { // a kernel before 5.18
		s.prog, err = ebpf.NewProgram(program(s.sockets, addrs, false))
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// attach puts the program on a link, natively if it may and can be.
func (s *steering) attach(index int, want Mode) (Mode, error) {
	try := func(flags link.XDPAttachFlags) error {
		return retryBusy(func() (err error) {
			s.link, err = link.AttachXDP(link.XDPOptions{Program: s.prog, Interface: index, Flags: flags})
			return err
		})
	}
	if want != ModeGeneric {
		err := try(link.XDPDriverMode)
		if err == nil || want == ModeNative || taken(err) || denied(err) {
			return ModeNative, err
		}
	}
	return ModeGeneric, try(link.XDPGenericMode)
}

// steer has the program give packets of a queue to a socket.
func (s *steering) steer(queue, fd int) error {
	return s.sockets.Put(uint32(queue), uint32(fd))
}

func (s *steering) close() {
	if s.link != nil {
		_ = s.link.Close()
	}
	if s.prog != nil {
		_ = s.prog.Close()
	}
	if s.sockets != nil {
		_ = s.sockets.Close()
	}
}

// taken reports whether somebody else's program or socket is in the way.
func taken(err error) bool {
	return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST)
}

func denied(err error) bool { return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) }

// setupError explains a step of opening that failed.
func setupError(addr netip.Addr, l *linkState, step string, err error) error {
	e := &transport.OpenError{Addr: addr, Err: &SetupError{Interface: l.name, Step: step, Err: err}}
	switch {
	case taken(err):
		e.Kind = transport.ErrInUse
		e.Hint = "another XDP program or AF_XDP socket has the link or its queue, perhaps of another hixl process: " +
			"see it with: ip -details link show dev " + l.name + "; close it, or use another link"
	case denied(err):
		e.Kind, e.Hint = transport.ErrPermission, privilegeHint()
	case errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM):
		e.Hint = "not enough memory that may be locked: raise ulimit -l, give CAP_IPC_LOCK, or lower RxFrames, TxFrames or Queues"
	case errors.Is(err, unix.EAFNOSUPPORT):
		e.Kind, e.Hint = ErrUnsupported, "the kernel needs CONFIG_XDP_SOCKETS; use the UDP transport"
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ERANGE):
		e.Kind, e.Hint = ErrUnsupported, "the driver, its MTU or the kernel (Linux 5.9 or newer is needed, 6.6 for packets longer than 3.9 KB) does not do it: "+
			"leave Mode and ZeroCopy to choose, lower the MTU, or use the UDP transport"
	}
	return e
}

// needed are the capabilities that AF_XDP takes.
var needed = []struct {
	number int
	name   string
}{{unix.CAP_NET_RAW, "CAP_NET_RAW"}, {unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {unix.CAP_BPF, "CAP_BPF"}}

// missing names the needed capabilities that this process does not have.
func missing() (names []string) {
	have := effective()
	for _, c := range needed {
		if have>>c.number&1 == 0 && (c.number != unix.CAP_BPF || have>>unix.CAP_SYS_ADMIN&1 == 0) {
			names = append(names, c.name)
		}
	}
	return names
}

// effective is the capabilities this thread acts with, a bit for each.
func effective() uint64 {
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	if unix.Capget(&h, &d[0]) != nil {
		return 0
	}
	return uint64(d[1].Effective)<<32 | uint64(d[0].Effective)
}

func privilegeHint() string {
	if m := missing(); len(m) > 0 {
		return fmt.Sprintf("this process lacks %s: run as root, or give them with: setcap cap_net_raw,cap_net_admin,cap_bpf+ep PROGRAM",
			strings.Join(m, ", "))
	}
	return "this process has CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF, but perhaps only in its own user namespace, " +
		"or a security policy (SELinux, seccomp, lockdown) forbids it"
}
