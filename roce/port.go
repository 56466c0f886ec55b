package roce

const (
	portBase = 0xC000 // source ports are 0xC000..0xFFFF (§1.4)
	// gsiHash is the multiplier of Linux's 32-bit hash, with which rxe spreads datagram queue pairs.
	gsiHash = 0x61C88647
)

// SourcePort returns the UDP source port of a connected queue pair: from the
// path's flow label (20 bits) when it has one, otherwise from both queue pair
// numbers. Both ends get the same (§1.4).
func SourcePort(flowLabel uint32, local, remote QPN) uint16 {
	fl := flowLabel & 0xFFFFF
	if fl == 0 {
		v := uint64(local&QPNMask) * uint64(remote&QPNMask)
		v ^= v >> 20
		v ^= v >> 40
		fl = uint32(v) & 0xFFFFF
	}
	return uint16(fl&0x3FFF^fl>>14) | portBase
}

// DatagramPort returns the UDP source port of a UD or GSI queue pair, from its
// own number alone (§1.4).
func DatagramPort(local QPN) uint16 {
	return portBase + uint16(uint32(local&QPNMask)*gsiHash>>18)
}

// CMFlowLabel returns the flow label the connection manager gives a path whose
// IP addresses carry none, from the two CM port numbers (§1.4).
func CMFlowLabel(src, dst uint16) uint32 { return (uint32(src)*31 + uint32(dst)) & 0xFFFFF }
