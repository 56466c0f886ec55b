package cm

import "fmt"

// PortSpace says which kind of port an IP service id holds (§5.5).
type PortSpace uint16

// The port spaces of RDMA CM.
const (
	PortSpaceIPoIB PortSpace = 0x0002
	PortSpaceTCP   PortSpace = 0x0106
	PortSpaceUDP   PortSpace = 0x0111
	PortSpaceIB    PortSpace = 0x013F
)

// Service returns the service id of a port.
func (s PortSpace) Service(port uint16) ServiceID { return ServiceID(s)<<16 | ServiceID(port) }

// ServiceID names what a REQ or SIDR_REQ wants to reach.
type ServiceID uint64

// Port takes a service id of RDMA CM apart; ok is false for any other.
func (s ServiceID) Port() (space PortSpace, port uint16, ok bool) {
	space, port = PortSpace(s>>16), uint16(s)
	if s>>32 != 0 {
		return 0, 0, false
	}
	switch space {
	case PortSpaceTCP, PortSpaceUDP, PortSpaceIB, PortSpaceIPoIB:
		return space, port, true
	}
	return 0, 0, false
}

// HasIPHeader reports whether private data of this service begins with an
// [IPHeader].
func (s ServiceID) HasIPHeader() bool { _, _, ok := s.Port(); return ok }

// String returns "tcp/7174", "udp/7174" and the like, or sixteen digits.
func (s ServiceID) String() string {
	space, port, ok := s.Port()
	if !ok {
		return fmt.Sprintf("%016x", uint64(s))
	}
	names := map[PortSpace]string{PortSpaceTCP: "tcp", PortSpaceUDP: "udp", PortSpaceIB: "ib", PortSpaceIPoIB: "ipoib"}
	return fmt.Sprintf("%s/%d", names[space], port)
}
