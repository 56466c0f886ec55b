package roce

// MakeCNP returns the congestion notification packet for the sender's queue
// pair dest: BECN set, PSN 0, sixteen zero bytes (§1.11).
func MakeCNP(dest QPN) Packet {
	return Packet{Opcode: OpCNP, BECN: true, PKey: PKeyDefault, DestQP: dest & QPNMask}
}
