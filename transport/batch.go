package transport

import "net/netip"

// Rx is one slot of a receive batch. The caller owns the slot, SkipTOS and Buf;
// ReadBatch writes all other fields.
type Rx struct {
	// Data is a UDP payload, BTH to ICRC, or a train of them. It is valid until
	// the slot is given to ReadBatch or Release again.
	Data []byte
	// Seg is the size of each packet in a train (the last may be shorter), or 0
	// when Data is one packet.
	Seg int

	Src     netip.Addr // without zone
	Dst     netip.Addr // the local address
	SrcPort uint16
	TOS     uint8 // DSCP and ECN as received; 0 without Caps.ECN
	// SkipTOS, in the first slot of a batch, is leave to tell a TOS of 0 of small
	// packets that come one by one, where that makes receiving faster. Some are told
	// as they are, so that a marked path is noticed.
	SkipTOS bool

	// HaveID says that ID and Frag are as received. It is never set for IPv6.
	HaveID bool
	ID     uint16 // IPv4 identification; packet i of a train has ID + i
	Frag   uint16 // IPv4 flags and fragment offset, as on the wire (0x4000 is DF)
	TTL    uint8  // hop limit, 0 when not known

	// Buf is where the packet is put, unless the carrier lends. Only its
	// capacity matters; Caps.RxBuf says how much it should be.
	Buf []byte
	// Lease is the carrier's own note about memory it lent.
	Lease uint64
}

// Packets returns the number of packets in the slot.
func (r *Rx) Packets() int { return segments(len(r.Data), r.Seg) }

// Packet returns packet i of the slot, 0 ≤ i < Packets.
func (r *Rx) Packet(i int) []byte { return segment(r.Data, r.Seg, i) }

// NewBatch returns n slots with storage that fits whatever c receives.
func NewBatch(c Conn, n int) []Rx {
	b := make([]Rx, n)
	caps := c.Caps()
	if caps.Lends {
		return b
	}
	return slots(b, make([]byte, n*caps.RxBuf), caps.RxBuf)
}

// NewBatchIn returns slots that use store, as many as fit; with lent storage it is
// not used. It stays the caller's to free, once nobody reads with the slots.
func NewBatchIn(c Conn, store []byte) []Rx {
	caps := c.Caps()
	b := make([]Rx, len(store)/max(caps.RxBuf, 1))
	if caps.Lends {
		return b
	}
	return slots(b, store, caps.RxBuf)
}

func slots(b []Rx, store []byte, size int) []Rx {
	for i := range b {
		b[i].Buf = store[i*size : (i+1)*size : (i+1)*size]
	}
	return b
}

// Tx is one packet or train to send. WriteBatch only reads it, and keeps nothing
// of it when it returns.
type Tx struct {
	// Data is a sealed UDP payload, BTH to ICRC, or a train of them.
	Data []byte
	// Seg is the size of each packet in a train, of which the last may be
	// shorter; 0, or a Seg not smaller than Data, makes one packet.
	Seg int
	// Dst is the destination, of the family of the local address.
	Dst netip.Addr
	// SrcPort is the UDP source port (entropy). It must be a value that
	// SourcePort returned if the packet is to pass its ICRC check.
	SrcPort uint16
	// TOS is DSCP<<2 | ECN.
	TOS uint8
	// ID is the IPv4 identification of a single packet; only with
	// Caps.FullIPControl, otherwise it is not looked at.
	ID uint16
	// Lease is that of the [Frame] at the start of which Data lies, 0 when it
	// lies in the caller's memory.
	Lease uint64
}

// Frame is memory that a [Lender] lends for one packet to be sent.
type Frame struct {
	// Buf takes a packet from BTH to ICRC.
	Buf []byte
	// Lease is the carrier's own note, never 0.
	Lease uint64
}

// Packets returns the number of packets in t.
func (t *Tx) Packets() int { return segments(len(t.Data), t.Seg) }

// Packet returns packet i of t, 0 ≤ i < Packets.
func (t *Tx) Packet(i int) []byte { return segment(t.Data, t.Seg, i) }

// IsTrain reports whether t holds more than one packet.
func (t *Tx) IsTrain() bool { return t.Seg > 0 && len(t.Data) > t.Seg }

func segments(n, seg int) int {
	if seg <= 0 || n <= seg {
		return 1
	}
	return (n + seg - 1) / seg
}

func segment(b []byte, seg, i int) []byte {
	if seg <= 0 || len(b) <= seg {
		return b
	}
	return b[i*seg : min((i+1)*seg, len(b))]
}
