// Package atomic executes 64-bit atomics on any device.Memory: compare-and-swap,
// fetch-and-add and store, with exclusion where the memory has none of its own.
// It shares its name with sync/atomic on purpose; import it as ratomic.
//
// # Who calls it
//
// The NIC calls [Do] for a peer's atomics and for local ones, from any goroutine
// and holding no lock that a Completer of another operation might take. There
// are no goroutines here.
//
// # Against whom an operation is atomic
//
// A memory with native atomics (device/host) executes them itself: on host
// memory they are sync/atomic on the word, so they are atomic against all queue
// pairs and against local code that uses sync/atomic on the same word (verbs'
// ATOMIC_GLOB). Local code that uses plain loads and stores races with them.
//
// A memory that answers device.ErrNoAtomic gets a read, a computation and a
// write under an exclusion of this package, keyed by memory and word (ATOMIC_HCA):
// such operations are atomic against each other when they come through the same
// *device.Memory value, and against nothing else. In particular a plain write to
// the same word that is issued before an emulated atomic has completed may be
// lost or seen; who needs an order waits for done.
package atomic
