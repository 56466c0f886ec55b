// Package staged is device.Memory over a device.Driver whose memory the CPU cannot
// address, or only slowly: it is how a packet gets to an accelerator.
//
// # A packet's way
//
// Packets come small and copies to a device want to be large. A [Pool] gathers the
// bytes of writes in pinned staging buffers, next to each other where they belong
// next to each other in the device, and gives a buffer to the device's copy engine
// as soon as that has nothing to do, or when it is full. While the engine has one,
// the wire fills another. So a lone message leaves at once, and bulk data in large
// pieces, without a timer. Reads take the same way back: what is asked for while the
// engine works is fetched in one piece after it. A write is reported when its copy's
// callback has come, that is when its bytes are in device memory.
//
// Where the driver can map memory, messages up to Config.Small go through the
// mapping and are done at once. Through an uncached mapping reads are slow, so that
// only those up to Config.SmallRead do.
//
// # Atomics
//
// An atomic reads the word, changes it and writes it back, through the mapping or by
// copies, and nothing else of this pool touches the word meanwhile. It is atomic
// against other operations of the same pool, that is against all remote operations,
// and not against code that runs on the device.
//
// # Memory
//
// Staging takes 2·Config.Buffers·Config.Chunk bytes of pinned memory and no more.
// Bytes that arrive while all buffers are taken, or that must wait for an operation
// they overlap, are kept on the Go heap. The senders' windows bound them, since what
// is not in device memory is not acknowledged, and when they are more than
// Config.Spill, Memory.Congested tells the NIC to take nothing more for this pool.
//
// # Goroutines and errors
//
// A pool has one goroutine, which Close ends. All methods may be called from any
// goroutine. When a copy fails, the operations that were in it fail with the
// driver's error and the pool goes on with a new stream; when the device is lost,
// all operations of its pool fail, and no other's.
package staged
