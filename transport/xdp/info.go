package xdp

import "time"

// Info is what a Conn got from the system, and what went by the rings' side.
type Info struct {
	Interface string
	Mode      Mode          // ModeNative or ModeGeneric
	ZeroCopy  bool          // the driver uses the rings' memory itself
	MultiBuf  bool          // frames longer than a chunk can be received and sent
	Queues    int           // served, from 0 on
	Spin      time.Duration // Config.Spin, as filled in; SpinOff is never
	ChunkSize int           // of the rings' memory, bytes
	// KernelRx and KernelTx count packets that took the kernel's way instead of
	// the rings: see the package's documentation.
	KernelRx, KernelTx uint64
	// Resolving is how many packets wait for a neighbour's hardware address;
	// Unresolved counts those that were dropped because it could not be had.
	Resolving  int
	Unresolved uint64
	// RxBad counts frames that came by the rings and were dropped for their
	// headers: not for our hardware address, wrong lengths or checksums.
	RxBad uint64
}

// Accounting says where the frames of all queues are. When nothing is under way,
// RxLent, TxFilled, TxInKernel and TxWaiting are 0 and nothing is lost:
// RxFill + RxSpare + RxLent = RxTotal, and the Tx parts likewise give TxTotal.
type Accounting struct {
	RxTotal  int // chunks for received frames
	RxFill   int // in the fill ring, or in the kernel's hands
	RxReady  int // in the receive ring, not read yet; these count as RxFill too
	RxSpare  int // about to go to the fill ring
	RxLent   int // lent to the reader
	RxLinear int // packets copied together and lent

	TxTotal    int // slots for frames to send
	TxFree     int
	TxLent     int // lent to the writer
	TxWaiting  int // for a neighbour
	TxInKernel int // in the send ring, or sent and not confirmed
}
