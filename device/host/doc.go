// Package host is device.Memory over the process's own memory: a slice that the
// caller has ([New]) or pages mapped for the purpose ([Alloc]).
//
// Every operation is done when its call returns and allocates nothing. All
// methods may be called from any goroutine; there are no goroutines of its own.
//
// Copies are plain copies. A remote write that arrives while local code reads
// the same bytes is a race by nature, as it is with a hardware NIC: the reader
// may see any mix of old and new bytes, and the race detector may say so.
// Synchronise by what the protocol offers (a completion, an immediate, an atomic
// or a flag word read with sync/atomic after which the data is read), not by
// looking at the bytes themselves. The race detector watches the Go heap only: on
// memory from Alloc it sees neither races nor the order that atomics make, so
// under -race guard other data by something it sees.
//
// Atomics are sync/atomic operations on the word itself, so they are atomic
// against every other remote atomic and against local code that uses sync/atomic
// on the same word; against plain loads and stores they are not. They need the
// real address of the word to be a multiple of 8: Alloc gives page-aligned
// memory; a slice from make([]byte, n) is 8-byte aligned when n is 16 or more, but
// not where it was cut out of a larger one.
//
// [Driver] is the same memory behind device.Driver. Each of its streams has a
// goroutine, which Destroy and Close end.
package host
