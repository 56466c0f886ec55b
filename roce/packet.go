package roce

// Packet is one decoded packet from its BTH on, or one to be encoded. Which of
// the extension headers count follows from Opcode; the others are zero after
// Decode. Payload, and nothing else, aliases the decoded bytes: the Packet is
// good for as long as those are.
type Packet struct {
	Opcode Opcode
	SE     bool  // solicited event
	Mig    bool  // migrated: send true, ignore (§1.7)
	Pad    uint8 // pad bytes after the payload, 0..3
	TVer   uint8 // transport header version, 0 in every decoded packet
	Resv6  uint8 // low six bits of byte 4: send 0, ignore
	Resv7  uint8 // low seven bits of byte 8: send 0, ignore
	FECN   bool
	BECN   bool
	AckReq bool
	PKey   uint16
	DestQP QPN
	PSN    PSN

	RETH      RETH
	Atomic    AtomicETH
	AETH      AETH
	AtomicAck uint64 // the value before the operation
	Imm       uint32 // immediate data; its wire bytes are its big-endian form
	InvKey    uint32 // rkey to invalidate
	DETH      DETH
	SRQN      uint32 // XRCETH: shared receive queue number, 24 bits
	SRQNResv  uint8  // XRCETH: reserved byte 0: send 0, ignore
	FETH      FETH
	CNPResv   [CNPLen]byte // the reserved bytes of a CNP: send 0, ignore

	Payload []byte // without pad

	padding [3]byte // the pad bytes as received; zero for packets of our own
}

// SetPayload sets the payload and the pad count that its length asks for. The
// packet keeps b, no copy.
func (p *Packet) SetPayload(b []byte) {
	p.Payload, p.Pad, p.padding = b, uint8(-len(b)&3), [3]byte{}
}

// HeaderLen returns the bytes of the BTH and the opcode's extension headers.
func (p *Packet) HeaderLen() int { return BTHLen + int(opcodes[p.Opcode].ext) }

// Len returns the bytes of the whole packet, ICRC included.
func (p *Packet) Len() int { return p.HeaderLen() + len(p.Payload) + int(p.Pad&3) + ICRCLen }
