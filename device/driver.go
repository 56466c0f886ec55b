package device

import "time"

// Addr is an address in a driver's own space. The CPU must not follow it, even
// where it looks like a pointer.
type Addr uint64

// Block is memory of a device: Size bytes from Addr on. It is a value and owns
// nothing by itself; the driver that allocated it knows it by its Addr.
type Block struct {
	Addr Addr
	Size uint64
}

// Driver is one opened device: what Memory over an accelerator is built on. All
// methods may be called from any goroutine, and none is meant for each packet: a
// call may cross to another thread. Errors of the device's own software are
// *DriverError; see there for what they unwrap to. devicetest.RunDriver checks
// all that is promised here.
type Driver interface {
	// Info names the device.
	Info() Info
	// Caps says what it can do. It never changes.
	Caps() Caps
	// Usage counts what is alive, for leak checks.
	Usage() Usage

	// Alloc returns size bytes, 1 or more, aligned to Caps.Align, of undefined
	// content. Errors: ErrSize, ErrNoMemory.
	Alloc(size uint64, o AllocOptions) (Block, error)
	// Free gives a block of Alloc back; its mappings must be unmapped and its
	// copies over. Freeing twice, or what is not a block, is ErrArgument.
	Free(b Block) error
	// Inspect tells what the memory at addr is, whoever allocated it, so that a
	// framework's buffers can be registered. ErrRange when not all size bytes
	// belong to one allocation, where the driver can tell.
	Inspect(addr Addr, size uint64) (Attr, error)

	// AllocHost returns size bytes, 1 or more, of host memory that asynchronous
	// copies may use (pinned, outside the Go heap). The caller frees it.
	AllocHost(size int) ([]byte, error)
	// FreeHost gives b, as AllocHost returned it, back. ErrArgument otherwise.
	FreeHost(b []byte) error

	// Copy moves bytes now, in the order of the list, and returns when they are
	// there. Any host memory will do.
	Copy(list ...Copy) error

	// Map makes a block addressable by the CPU. ErrUnsupported where the device,
	// or Caps.MaxMapping, does not allow it.
	Map(b Block) (*Mapping, error)
	// Unmap ends a mapping of Map: nobody may touch it afterwards.
	Unmap(m *Mapping) error

	// NewStream makes a stream. Higher priorities go first, in the range of Caps;
	// 0 is always in it.
	NewStream(priority int) (Stream, error)
	// NewEvent makes an event.
	NewEvent() (Event, error)

	// Close ends everything that is alive on the device, and the driver with it.
	// Closing twice is fine; after it, calls give ErrClosed. A driver that is a
	// Retainer refuses with ErrBusy while it is retained.
	Close() error
}

// AllocOptions choose a kind of device memory. The zero value is right for bulk
// data.
type AllocOptions struct {
	// Mappable asks for memory that Map will accept, where there is any. It may
	// be scarcer or rounded up to larger pages; where there is none, ordinary
	// memory comes back.
	Mappable bool
}

// Info names a device.
type Info struct {
	// Name is kind and number, such as "ascend:0".
	Name string
	// Model is the hardware, as its software names it.
	Model string
	// Version is that of the driver library.
	Version string
}

// Caps is what a device can do.
type Caps struct {
	// Align is what every Block's address is a multiple of, at least 8.
	Align uint64
	// Mapping says by which way Map works, "" for not at all.
	Mapping string
	// MaxMapping is the largest mapping in bytes, 0 when there is no limit.
	MaxMapping uint64
	// MappingCached is true where the CPU caches mapped memory, so that loads
	// are cheap.
	MappingCached bool
	// Pinned is true where asynchronous copies take memory of AllocHost only.
	Pinned bool
	// Batch is true where a list of copies costs one call.
	Batch bool
	// Values is true where streams write and wait for values.
	Values bool
	// Callbacks is true where a stream wakes the host by itself; else its end is
	// found by asking.
	Callbacks bool
	// LeastPriority and GreatestPriority bound NewStream's argument.
	LeastPriority, GreatestPriority int
}

// Usage counts what is alive on a device.
type Usage struct {
	Blocks, HostBuffers, Mappings, Streams, Events int
	// Bytes and HostBytes are what Alloc and AllocHost have given out.
	Bytes, HostBytes uint64
}

// Place is where memory lies.
type Place uint8

// The places.
const (
	// PlaceUnknown: the driver knows nothing of it, so it is ordinary host memory
	// or no memory at all.
	PlaceUnknown Place = iota
	// PlaceHost is host memory that the driver pinned.
	PlaceHost
	// PlaceDevice is memory of a device.
	PlaceDevice
)

// String names the place.
func (p Place) String() string {
	switch p {
	case PlaceHost:
		return "host memory"
	case PlaceDevice:
		return "device memory"
	default:
		return "memory the driver does not know"
	}
}

// Attr is what a driver knows about an address.
type Attr struct {
	Place Place
	// Device is the number of the device, where Place is PlaceDevice.
	Device int
	// PageSize in bytes, 0 when unknown.
	PageSize int
}

// Direction says between what a Copy moves bytes.
type Direction uint8

// The directions. The zero Direction is none of them, so that a forgotten field
// is refused.
const (
	// In moves Host to Dev.
	In Direction = 1 + iota
	// Out moves Dev to Host.
	Out
	// Within moves Len bytes from From to Dev.
	Within
)

// String names the direction.
func (d Direction) String() string {
	switch d {
	case In:
		return "host to device"
	case Out:
		return "device to host"
	case Within:
		return "within the device"
	default:
		return "no direction"
	}
}

// Copy is one movement of bytes. Host belongs to the driver until the copy is
// over. An empty copy is legal.
type Copy struct {
	Dir  Direction
	Dev  Addr
	Host []byte // In and Out
	From Addr   // Within
	Len  uint64 // Within
}

// Bytes is how many bytes the copy moves.
func (c *Copy) Bytes() uint64 {
	if c.Dir == Within {
		return c.Len
	}
	return uint64(len(c.Host))
}

// Condition compares a 64-bit word with a value, see Stream.WaitValue.
type Condition uint8

// The conditions.
const (
	// AtLeast: the word is not less than the value, as a signed difference.
	AtLeast Condition = iota
	// Equal: the word is the value.
	Equal
	// AnyBit: word and value have a bit in common.
	AnyBit
	// NotBoth: some bit is set neither in the word nor in the value.
	NotBoth
)

// Holds reports whether word meets the condition against value. It is the
// definition of the conditions.
func (c Condition) Holds(word, value uint64) bool {
	switch c {
	case AtLeast:
		return int64(word-value) >= 0
	case Equal:
		return word == value
	case AnyBit:
		return word&value != 0
	case NotBoth:
		return ^(word | value) != 0
	default:
		return false
	}
}

// Stream is an ordered queue of work of a device: what is queued later begins
// when what was queued before is over. Streams run side by side. A call queues and
// returns; its error says that nothing was queued. All methods may be called from
// any goroutine, and calls that happen one after the other queue in that order.
//
// When work fails, what was queued behind it is dropped and the stream is of no
// more use: every later call gives the error that ended it.
type Stream interface {
	// Copy queues copies, in the order of the list. Where Caps.Pinned, host
	// memory must come from AllocHost: else ErrArgument.
	Copy(list ...Copy) error
	// Record makes e complete when what was queued before is over.
	Record(e Event) error
	// WaitEvent holds what is queued later until e, as last recorded before this
	// call, is complete. An event that was never recorded is complete.
	WaitEvent(e Event) error
	// WriteValue stores a 64-bit word at addr, 8-byte aligned.
	WriteValue(addr Addr, value uint64) error
	// WaitValue holds what is queued later until the word at addr meets the
	// condition.
	WaitValue(addr Addr, value uint64, c Condition) error
	// Do calls f, exactly once, when what was queued before is over: with nil, or
	// with the error that ended the stream. It runs on the driver's own goroutine or
	// thread, for which the stream may wait, so it must not block nor call the
	// driver; on return from Do it may have run. If Do returns an error, f is not called.
	Do(f func(err error)) error
	// Sync waits until everything queued is over and returns what ended the
	// stream, if it failed. ErrTimeout after a time, 0 for no limit.
	Sync(timeout time.Duration) error
	// Destroy ends the stream and what is left in it. Destroying twice is fine.
	Destroy() error
}

// Submitter is implemented by streams that take copies and what follows them in one
// step, without waiting until they are queued. Submit is Copy and Do; what goes wrong
// is told by f, which is called exactly once. The list may be reused when f is called.
type Submitter interface {
	Submit(list []Copy, f func(err error))
}

// Event marks a place in a stream's work.
type Event interface {
	// Done reports whether the work before its last Record is over; an event that
	// was never recorded is done.
	Done() (bool, error)
	// Destroy ends it. Destroying twice is fine.
	Destroy() error
}
