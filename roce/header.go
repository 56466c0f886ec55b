package roce

import "encoding/binary"

// Sizes in bytes (§1.7, §1.8).
const (
	BTHLen       = 12 // base transport header
	RETHLen      = 16
	AtomicETHLen = 28
	AETHLen      = 4
	AtomicAckLen = 8
	ImmLen       = 4
	IETHLen      = 4
	DETHLen      = 8
	XRCETHLen    = 4
	FETHLen      = 4
	CNPLen       = 16 // the reserved bytes of a CNP
	ICRCLen      = 4  // invariant CRC, the last bytes of every packet

	// MaxHeaderLen is the BTH and the largest set of extension headers, that of an XRC atomic.
	MaxHeaderLen = BTHLen + XRCETHLen + AtomicETHLen

	minPacket = BTHLen + ICRCLen
)

const (
	// Port is the UDP destination port of every RoCEv2 packet, answers included (§1.4).
	Port = 4791

	// PKeyDefault is the P_Key of the default partition with full membership.
	PKeyDefault = 0xFFFF
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

// Get reads the header from b, which has at least [RETHLen] bytes.
func (h *RETH) Get(b []byte) {
	_ = b[RETHLen-1]
	h.VA, h.RKey, h.Len = be.Uint64(b), be.Uint32(b[8:]), be.Uint32(b[12:])
}

// Put writes the header to b, which has room for [RETHLen] bytes.
func (h *RETH) Put(b []byte) {
	_ = b[RETHLen-1]
	be.PutUint64(b, h.VA)
	be.PutUint32(b[8:], h.RKey)
	be.PutUint32(b[12:], h.Len)
}

// Get reads the header from b, which has at least [AtomicETHLen] bytes.
func (h *AtomicETH) Get(b []byte) {
	_ = b[AtomicETHLen-1]
	h.VA, h.RKey, h.SwapAdd, h.Compare = be.Uint64(b), be.Uint32(b[8:]), be.Uint64(b[12:]), be.Uint64(b[20:])
}

// Put writes the header to b, which has room for [AtomicETHLen] bytes.
func (h *AtomicETH) Put(b []byte) {
	_ = b[AtomicETHLen-1]
	be.PutUint64(b, h.VA)
	be.PutUint32(b[8:], h.RKey)
	be.PutUint64(b[12:], h.SwapAdd)
	be.PutUint64(b[20:], h.Compare)
}

// Get reads the header from b, which has at least [AETHLen] bytes.
func (h *AETH) Get(b []byte) {
	v := be.Uint32(b)
	h.Syndrome, h.MSN = Syndrome(v>>24), v&0xFFFFFF
}

// Put writes the header to b, which has room for [AETHLen] bytes.
func (h *AETH) Put(b []byte) { be.PutUint32(b, uint32(h.Syndrome)<<24|h.MSN&0xFFFFFF) }

// Get reads the header from b, which has at least [DETHLen] bytes.
func (h *DETH) Get(b []byte) {
	v := be.Uint64(b)
	h.QKey, h.Resv, h.SrcQP = uint32(v>>32), uint8(v>>24), QPN(v)&QPNMask
}

// Put writes the header to b, which has room for [DETHLen] bytes.
func (h *DETH) Put(b []byte) {
	be.PutUint64(b, uint64(h.QKey)<<32|uint64(h.Resv)<<24|uint64(h.SrcQP&QPNMask))
}

// Get reads the header from b, which has at least [FETHLen] bytes.
func (h *FETH) Get(b []byte) {
	v := be.Uint32(b)
	h.Type, h.Select, h.Resv = uint8(v&0xF), uint8(v>>4&3), v>>6
}

// Put writes the header to b, which has room for [FETHLen] bytes.
func (h *FETH) Put(b []byte) {
	be.PutUint32(b, h.Resv<<6|uint32(h.Select&3)<<4|uint32(h.Type&0xF))
}
