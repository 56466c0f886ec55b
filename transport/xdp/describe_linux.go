package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Parts of the kernel's netdev family of generic netlink.
const (
	netdevFamily     = "netdev"
	netdevGet        = 1 // NETDEV_CMD_DEV_GET
	netdevIndex      = 1 // NETDEV_A_DEV_IFINDEX
	netdevFeatures   = 3 // NETDEV_A_DEV_XDP_FEATURES
	featureBasic     = 1 << 0
	featureRedirect  = 1 << 1
	featureZeroCopy  = 1 << 3
	featureFragments = 1 << 5
)

// Describe says what a link offers AF_XDP, what a Conn with the zero Config would be
// like on it, and what is missing: the privileges of this process, the driver's part,
// the MTU. It changes nothing.
func Describe(name string) string {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE, unix.NETLINK_GENERIC)
	if err != nil {
		return "unknown: " + err.Error()
	}
	defer h.Close()
	l, err := h.LinkByName(name)
	if err != nil {
		return "unknown: " + err.Error()
	}
	a := l.Attrs()
	switch {
	case a.Flags&net.FlagLoopback != 0:
		return "no: it is loopback, where the UDP transport is faster"
	case a.EncapType != "ether":
		return "no: it is not an Ethernet link"
	}
	said := []string{modeOf(h, a), fmt.Sprintf("readers look for packets for up to %v before they sleep", DefaultSpin)}
	if a.MTU > MaxMTU {
		said = append(said, fmt.Sprintf("packets up to %d of its MTU's %d bytes", MaxMTU, a.MTU))
	}
	if a.Xdp != nil && a.Xdp.Attached {
		said = append(said, fmt.Sprintf("taken: program %d is on it", a.Xdp.ProgId))
	}
	if m := missing(); len(m) > 0 {
		said = append(said, "this process lacks "+strings.Join(m, ", "))
	}
	return strings.Join(said, "; ")
}

// modeOf tells how the driver would run the program.
func modeOf(h *netlink.Handle, a *netlink.LinkAttrs) string {
	f, err := features(h, a.Index)
	switch {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP):
		return "generic, or native if the driver has it (the kernel, before 6.3, does not tell)"
	case err != nil:
		return "unknown: " + err.Error()
	case f&(featureBasic|featureRedirect) != featureBasic|featureRedirect:
		return "generic: the driver has no native XDP"
	}
	said := "native"
	if f&featureZeroCopy != 0 {
		said += ", zero-copy"
	} else {
		said += ", the kernel copies"
	}
	const single = largeChunk - unix.XDP_PACKET_HEADROOM
	if f&featureFragments == 0 && a.MTU > single {
		said += fmt.Sprintf("; its MTU of %d bytes needs frames in pieces, which the driver does not say that it has: lower it to %d, or generic is used", a.MTU, single)
	}
	return said
}

// genericHeader is struct genlmsghdr: command, version, and a reserved half-word
// that has to be 0, which the netlink package's own type does not see to.
type genericHeader [4]byte

func (h genericHeader) Len() int          { return len(h) }
func (h genericHeader) Serialize() []byte { return h[:] }

// features asks the kernel for what the driver says of itself.
func features(h *netlink.Handle, index int) (uint64, error) {
	family, err := h.GenlFamilyGet(netdevFamily)
	if err != nil {
		return 0, err
	}
	req := nl.NewNetlinkRequest(int(family.ID), 0)
	req.AddData(genericHeader{netdevGet, uint8(family.Version)})
	req.AddData(nl.NewRtAttr(netdevIndex, nl.Uint32Attr(uint32(index))))
	said, err := req.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return 0, err
	}
	for _, m := range said {
		if len(m) < nl.SizeofGenlmsg {
			continue
		}
		attrs, err := nl.ParseRouteAttr(m[nl.SizeofGenlmsg:])
		if err != nil {
			return 0, err
		}
		for _, a := range attrs {
			if a.Attr.Type == netdevFeatures && len(a.Value) >= 8 {
				return binary.NativeEndian.Uint64(a.Value), nil
			}
		}
	}
	return 0, unix.EOPNOTSUPP
}
