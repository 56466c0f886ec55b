package transport

import "net/netip"

// Port is the UDP destination port of every RoCEv2 packet, in both directions
// (§1.4).
const Port = 4791

// Conn carries packets to and from one local IP address.
//
// WriteBatch may be called from several goroutines at once, and together with
// reads. ReadBatch may be too, each call with its own slots, but then the order
// of packets between the callers is lost: a NIC lets one goroutine read at a
// time and others that only want to know use WaitRead.
type Conn interface {
	Reader

	// LocalAddr is the address the Conn was opened on, unmapped and without
	// zone. Addresses in Rx and Tx have none either: a Conn sits on one link.
	LocalAddr() netip.Addr

	// Caps says what the carrier can do now. Only Trains may change while the
	// Conn is open, and only to zero.
	Caps() Caps

	// SourcePort returns the UDP source port that a Tx with SrcPort want really
	// leaves from. Wanted ports are spread over those the Conn owns, and a port
	// it owns maps to itself. It never changes while the Conn is open.
	SourcePort(want uint16) uint16

	// WriteBatch sends b in order and returns how many were dealt with. Packets
	// that the network or a full buffer drops count as sent: they are loss, as
	// on any wire, and appear in Stats. An error says why b[n] could not be sent
	// and nothing after it was tried: ErrTrainsOff, *MTUError, *TxError, or
	// net.ErrClosed. It never blocks longer than a few milliseconds.
	WriteBatch(b []Tx) (int, error)

	// Close ends all calls with net.ErrClosed and frees the address. A second
	// Close returns net.ErrClosed.
	Close() error
}

// Reader receives: all that comes to a Conn, or a part of it.
type Reader interface {
	// ReadBatch fills slots from b[0] on with packets in the order of arrival
	// and returns how many. With wait it blocks until there is at least one;
	// without, it never blocks and returns 0, nil when there is none. Slots may
	// be swapped within b. After Close, and in a call that Close interrupts, the
	// error is net.ErrClosed.
	ReadBatch(b []Rx, wait bool) (int, error)

	// WaitRead blocks until a ReadBatch without wait would find a packet (or
	// would have, if nobody else took it). After Close it returns net.ErrClosed.
	WaitRead() error

	// Release gives slots back to a carrier that lends memory, for a reader that
	// will not call ReadBatch with them soon. Others ignore it.
	Release(b []Rx)

	// Stats returns the counters since the Conn was opened. Of a part, those for
	// sending are 0.
	Stats() Stats
}

// Sharded is a Conn that can be read in parts, side by side and without a common
// lock. Who reads the parts does not read the Conn; who knows nothing of them
// may, and gets everything.
type Sharded interface {
	Conn

	// Shards returns the parts, a power of two of them, the same each time. A
	// packet comes by the part whose index is in the low bits of the destination
	// QPN, but that is the carrier's best effort: a part can bring any packet.
	Shards() []Reader
}

// Lender is a Conn that lends memory to build packets in, so that they leave from
// where they were built. Packets from the caller's own memory are copied, but
// mean the same. A frame is back with the carrier as soon as WriteBatch has dealt
// with its packet, sent or not; the one that an error names, and those after it,
// stay the caller's.
type Lender interface {
	Conn
	// Lane is the lane of a source port, 0 or more and below Lanes. Packets in one
	// lane keep their order.
	Lane(srcPort uint16) int
	Lanes() int
	// Lend fills frames for packets of one lane and returns how many, which may be
	// none. Each takes the largest packet of Caps.MTU.
	Lend(lane int, frames []Frame) int
	// TakeBack takes frames that will not be sent. Until it has those that were
	// lent, their memory stays, even after Close.
	TakeBack(frames []Frame)
}

// Caps are the capabilities of a Conn.
type Caps struct {
	// HeadersVisible: every Rx has ID, Frag and TTL as received (HaveID is set
	// for IPv4), so that all 32 bits of the ICRC can be checked.
	HeadersVisible bool
	// KnownID: an IPv4 packet leaves with DF set and identification 0, or its
	// index in the train. Without it the ICRC of IPv4 packets can be right only
	// by chance for a receiver that checks the identification.
	KnownID bool
	// FullIPControl: Tx.ID is honoured.
	FullIPControl bool
	// ECN: Tx.TOS reaches the wire and Rx.TOS comes from it.
	ECN bool
	// Lends: Rx.Buf is not used.
	Lends bool
	// MTU is the largest IP packet of the link in bytes, IP header included, at
	// most 65535. A path may take less: see MTUError.
	MTU int
	// RxBuf is how many bytes Rx.Buf must hold for the largest packet or train
	// that can arrive. What does not fit is dropped and counted.
	RxBuf int
	// RxHolds is how many bytes the buffer holds that keeps what has arrived until
	// it is read, as the system counts them, which is up to twice what packets of
	// the path MTU carry and ten times what small ones do; 0 is not known.
	RxHolds int
	// Trains are the limits for sending trains, zero when it is not possible.
	Trains Trains
}

// Trains are the limits of one train.
type Trains struct {
	MaxSegments int // packets
	MaxBytes    int // bytes of all UDP payloads together
}

// On reports whether trains can be sent at all.
func (t Trains) On() bool { return t.MaxSegments > 1 }

// Segments returns how many packets of size bytes fit in a train, at least 1.
func (t Trains) Segments(size int) int {
	if size <= 0 || !t.On() {
		return 1
	}
	return max(1, min(t.MaxSegments, t.MaxBytes/size))
}

// Stats counts packets, not trains, unless it says otherwise.
type Stats struct {
	RxPackets, RxBytes uint64 // delivered; bytes of UDP payload
	RxTrains           uint64 // trains among them
	RxOverflow         uint64 // dropped because the receive buffer was full
	RxTruncated        uint64 // datagrams dropped because Rx.Buf was too small

	TxPackets, TxBytes uint64 // handed to the network
	TxTrains           uint64 // trains among them
	TxFull             uint64 // dropped because the send buffer or queue stayed full
	TxUnreachable      uint64 // dropped because there was no route, neighbour or permission
}
