// Package device says where bytes live and how they move: [Memory] is a span of
// bytes that a region can be built over, be it the process's own memory
// (device/host) or an accelerator's, which the CPU may be unable to address.
//
// # Who calls it
//
// The NIC moves packet payloads with WriteV and ReadV and executes remote
// atomics; regions (package mr) only ask for size, address and the direct view.
// All methods may be called from any goroutine. A Memory never calls back into
// the goroutine that is inside one of its methods.
//
// # Finishing now or later
//
// Every operation reports done. With done true it is over, its error is the one
// returned and the Completer is not called. With done false the error is nil
// and [Completer.MemoryDone] follows exactly once, from another goroutine or
// from a later call into the memory's own driver, never from inside the call
// that started the operation. Host memory is always done at once and allocates
// nothing.
//
// # Ordering
//
// Operations whose byte ranges overlap take effect in the order in which they
// were issued, where at least one of them changes bytes: a read issued after a
// write sees the write, a read issued before it does not. The order of issue is
// the order of calls that happen one after the other; calls that run at the
// same time on several goroutines are unordered. Operations that do not overlap
// take effect in any order, in pieces, and completions come in any order,
// overlapping or not. So whoever must know that bytes are visible waits for
// done, and for nothing else.
//
// A failed operation may have moved any part of its bytes, or none.
//
// # Ownership
//
// The []Vec and, for a write, the bytes it points at are the caller's again
// when the call returns: a memory that finishes later has copied them. The
// buffers of a read and the [AtomicOp] belong to the memory until done; until
// then their content is undefined.
//
// # Drivers
//
// [Driver] is what a Memory over an accelerator is built on: allocation, copies
// now or on a [Stream], events, values, callbacks and, where there is one, a
// mapping into host address space. Package device/host has the plain one.
// Streams are ordered within and concurrent with each other; bytes of an
// asynchronous copy are visible when a callback or event behind it says so, and
// bytes written through a [Mapping] after its Fence.
package device
