package roce

// Continues reports whether b goes on where prev, a packet that decodes, leaves
// off: it is as long, and its BTH is the same but for the PSN, which is the next
// one, and for AckReq, which is b's. Then b decodes too, if the BTH is all the
// headers that the two have.
func Continues(prev, b []byte) (ackReq, ok bool) {
	if len(b) != len(prev) || len(b) < minPacket {
		return false, false
	}
	was, word := be.Uint32(prev[8:]), be.Uint32(b[8:])
	next := was&^uint32(PSNMask) | (was+1)&uint32(PSNMask)
	return word>>31 != 0, be.Uint64(b) == be.Uint64(prev) && (word^next)<<1 == 0
}
