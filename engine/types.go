package engine

import (
	"fmt"
	"math"
	"unsafe"
)

// MemType says where memory lies.
type MemType int32

// The kinds of memory.
const (
	// MemDevice is an accelerator's memory, see [Config].
	MemDevice MemType = 0
	// MemHost is the host's memory.
	MemHost MemType = 1
)

// String names the kind.
func (t MemType) String() string {
	switch t {
	case MemDevice:
		return "MEM_DEVICE"
	case MemHost:
		return "MEM_HOST"
	}
	return fmt.Sprintf("MemType(%d)", int32(t))
}

// MemDesc is memory to be registered: Bytes, or Len bytes from Addr on.
//
// Memory that Go has allocated is given as Bytes, which the engine keeps alive until
// it is deregistered. Addr is for memory that the garbage collector does not know:
// of mmap, of a C library, of a device. It must stay mapped until [Engine.DeregisterMem]
// has returned.
type MemDesc struct {
	Bytes []byte
	Addr  uintptr
	Len   uint64
}

// TransferOp is the direction of a transfer.
type TransferOp int32

// The directions.
const (
	// Read copies from the remote engine's memory to this one's.
	Read TransferOp = 0
	// Write copies from this engine's memory to the remote one's.
	Write TransferOp = 1
)

// String names the direction.
func (o TransferOp) String() string {
	switch o {
	case Read:
		return "READ"
	case Write:
		return "WRITE"
	}
	return fmt.Sprintf("TransferOp(%d)", int32(o))
}

// TransferOpDesc is one piece of a transfer: Len bytes between LocalAddr here and
// RemoteAddr at the remote engine, each a part of one registered region.
type TransferOpDesc struct {
	LocalAddr  uintptr
	RemoteAddr uintptr
	Len        uint64
	// Local, if not nil, takes the place of LocalAddr and Len. If it is not a part
	// of a registered region, [Engine.TransferSync] copies it through buffers of the
	// option BufferPool.
	Local []byte
}

// span returns the local piece.
func (d *TransferOpDesc) span() (addr, n uint64) {
	if d.Local != nil {
		return addressOf(d.Local), uint64(len(d.Local))
	}
	return uint64(d.LocalAddr), d.Len
}

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// NotifyDesc is what one engine tells another: a name and a message of at most
// [MaxNotify] bytes each.
type NotifyDesc struct {
	Name, Msg string
}

// MaxNotify is the longest name, and the longest message, of a notification in
// bytes.
const MaxNotify = 1024

// TransferArgs is what an asynchronous transfer may be given beside its pieces.
type TransferArgs struct {
	// UserData comes back in [TransferResult].
	UserData any
	// Notify, if not nil, is delivered to the remote engine when all bytes of the
	// transfer are in memory: for it no second call, and no wait, is needed.
	Notify *NotifyDesc
}

// TransferReq names an asynchronous transfer of one engine. 0 is none.
type TransferReq uint64

// TransferStatus is how far a transfer is.
type TransferStatus int32

// The states of a transfer.
const (
	TransferWaiting   TransferStatus = 0
	TransferCompleted TransferStatus = 1
	// TransferTimeout is reserved and not returned.
	TransferTimeout TransferStatus = 2
	TransferFailed  TransferStatus = 3
)

// String names the state.
func (s TransferStatus) String() string {
	names := [...]string{"WAITING", "COMPLETED", "TIMEOUT", "FAILED"}
	if s >= 0 && int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("TransferStatus(%d)", int32(s))
}

// GetTransferStatusArgs says which transfers are asked about.
type GetTransferStatusArgs struct {
	// MaxQueryCount bounds the answers; 0 is [math.MaxUint32].
	MaxQueryCount uint32
	// SkipWaiting leaves out transfers that are not over.
	SkipWaiting bool
}

func (a *GetTransferStatusArgs) limit() uint64 {
	if a.MaxQueryCount == 0 {
		return math.MaxUint32
	}
	return uint64(a.MaxQueryCount)
}

// TransferResult is one transfer's state.
type TransferResult struct {
	Req      TransferReq
	UserData any
	Status   TransferStatus
	// Err is why it has failed, a *[StatusError].
	Err error
}

// AsyncConnectStatus is how far a link is.
type AsyncConnectStatus int32

// The states of a link.
const (
	NotConnect AsyncConnectStatus = iota
	ConnectPending
	Connecting
	Connected
	ConnectFailed
	DisconnectPending
	Disconnecting
)

// String names the state.
func (s AsyncConnectStatus) String() string {
	names := [...]string{
		"NOT_CONNECT", "CONNECT_PENDING", "CONNECTING", "CONNECTED", "CONNECT_FAILED", "DISCONNECT_PENDING", "DISCONNECTING",
	}
	if s >= 0 && int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("AsyncConnectStatus(%d)", int32(s))
}

// FeatureType is what [GetCapability] is asked about.
type FeatureType int32

// The features.
const (
	// FeatureAutoConnect: the option AutoConnect.
	FeatureAutoConnect FeatureType = 0
	// FeatureClientServerComm: links between clients and servers, without a bound
	// of 512.
	FeatureClientServerComm FeatureType = 1
)

// GetCapability returns 1 for a feature that there is, 0 for one that there is not.
func GetCapability(f FeatureType) (int32, error) {
	switch f {
	case FeatureAutoConnect, FeatureClientServerComm:
		return 1, nil
	}
	return 0, fail("GetCapability", "", invalid("feature %d, known: 0 (AutoConnect), 1 (client-server communication)", int32(f)))
}
