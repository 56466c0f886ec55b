package roce

import "encoding/binary"

// Sizes in bytes (§1.7, §1.8).
const (
	BTHLen  = 12 // base transport header
	ICRCLen = 4  // invariant CRC, the last bytes of every packet

	// MaxHeaderLen is the BTH and the largest set of extension headers, that of an XRC atomic.
	MaxHeaderLen = BTHLen + xrcethLen + atomicETHLen

	// Port is the UDP destination port of every RoCEv2 packet, answers included (§1.4).
	Port = 4791

	// PKeyDefault is the P_Key of the default partition with full membership.
	PKeyDefault = 0xFFFF

	minPacket = BTHLen + ICRCLen

	rethLen      = 16
	atomicETHLen = 28
	aethLen      = 4
	atomicAckLen = 8
	immLen       = 4
	iethLen      = 4
	dethLen      = 8
	xrcethLen    = 4
	fethLen      = 4
	cnpLen       = 16
)

const protoUDP = 17 // IP protocol number

var be = binary.BigEndian

// RETH is the RDMA header of WRITE First and Only, READ requests, FLUSH and ATOMIC WRITE.
type RETH struct {
	VA   uint64 // remote virtual address
	RKey uint32
	Len  uint32 // bytes of the whole message, or what is left of a resumed READ; 0..2^31
}

// AtomicETH is the header of CMP_SWAP and FETCH_ADD. Operands are numbers, not memory images.
type AtomicETH struct {
	VA      uint64 // remote virtual address, a multiple of 8
	RKey    uint32
	SwapAdd uint64 // what to swap in, or to add
	Compare uint64 // what must be there; 0 for FETCH_ADD
}

// AETH is the header of acknowledgements and of READ responses but the middle ones.
type AETH struct {
	Syndrome Syndrome
	MSN      uint32 // message sequence number, 24 bits
}

// DETH is the datagram header.
type DETH struct {
	QKey  uint32
	SrcQP QPN
	Resv  uint8 // reserved byte 4: send 0, ignore
}

// FETH is the FLUSH header.
type FETH struct {
	Type   uint8  // FlushGlobal and FlushPersistent, 4 bits
	Select uint8  // FlushRange or FlushRegion, 2 bits
	Resv   uint32 // the upper 26 bits, as a number: send 0, ignore
}

// Values of a FETH (§1.8).
const (
	FlushGlobal     = 1 // Type: visible to everybody
	FlushPersistent = 2 // Type: safe from power loss
	FlushRange      = 0 // Select: the address range of the RETH
	FlushRegion     = 1 // Select: the whole memory region
)

func (h *RETH) decode(b []byte) {
	_ = b[rethLen-1]
	h.VA, h.RKey, h.Len = be.Uint64(b), be.Uint32(b[8:]), be.Uint32(b[12:])
}

func (h *RETH) put(b []byte) {
	_ = b[rethLen-1]
	be.PutUint64(b, h.VA)
	be.PutUint32(b[8:], h.RKey)
	be.PutUint32(b[12:], h.Len)
}

func (h *AtomicETH) decode(b []byte) {
	_ = b[atomicETHLen-1]
	h.VA, h.RKey, h.SwapAdd, h.Compare = be.Uint64(b), be.Uint32(b[8:]), be.Uint64(b[12:]), be.Uint64(b[20:])
}

func (h *AtomicETH) put(b []byte) {
	_ = b[atomicETHLen-1]
	be.PutUint64(b, h.VA)
	be.PutUint32(b[8:], h.RKey)
	be.PutUint64(b[12:], h.SwapAdd)
	be.PutUint64(b[20:], h.Compare)
}

func (h *AETH) decode(b []byte) {
	v := be.Uint32(b)
	h.Syndrome, h.MSN = Syndrome(v>>24), v&0xFFFFFF
}

func (h *AETH) put(b []byte) { be.PutUint32(b, uint32(h.Syndrome)<<24|h.MSN&0xFFFFFF) }

func (h *DETH) decode(b []byte) {
	v := be.Uint64(b)
	h.QKey, h.Resv, h.SrcQP = uint32(v>>32), uint8(v>>24), QPN(v)&QPNMask
}

func (h *DETH) put(b []byte) {
	be.PutUint64(b, uint64(h.QKey)<<32|uint64(h.Resv)<<24|uint64(h.SrcQP&QPNMask))
}

func (h *FETH) decode(b []byte) {
	v := be.Uint32(b)
	h.Type, h.Select, h.Resv = uint8(v&0xF), uint8(v>>4&3), v>>6
}

func (h *FETH) put(b []byte) {
	be.PutUint32(b, h.Resv<<6|uint32(h.Select&3)<<4|uint32(h.Type&0xF))
}
