// Package ascendsim builds a library that stands in for the Ascend driver where no
// NPU is: the same symbols at the C ABI as libascendcl.so and libascend_hal.so, the
// same error codes, and a check of everything that the real ones insist on, so that
// wrong use fails here first. The C sources are in src.
//
// # What it is like
//
// Device memory lies in a range of addresses without access: a load or store
// through a device address faults. Copies run on a thread for each stream, in order
// within it and side by side across streams; bytes arrive at the end of a copy's
// time. Memory fresh from the allocator is not zero, small blocks begin at
// multiples of 64 bytes and no more, addresses are never given twice. What it
// checks: a context on the calling thread, and its device; sizes, kinds, alignment;
// memory that was freed, or freed twice, or freed under a copy; the host's side of
// an asynchronous copy, which must be pinned; streams and events of others.
//
// # What the environment chooses
//
// Read by aclInit; a test may change it later with the exported function
// ascendsim_set(key, value), the key without its prefix.
//
//	ASCENDSIM_DEVICES         number of devices, 1 to 8, default 2
//	ASCENDSIM_MEMORY          bytes of each, default 4 GiB
//	ASCENDSIM_BANDWIDTH       bytes per second of a device's engine in each direction, default no limit
//	ASCENDSIM_LATENCY         microseconds that a copy takes beside that, default 0
//	ASCENDSIM_CALL_DELAY      microseconds that each call takes, default 0
//	ASCENDSIM_STREAMS         streams that can exist, default 1984
//	ASCENDSIM_MAPPING         present (default), absent, or limited:BYTES for halHostRegister
//	ASCENDSIM_VMM             present (default) or absent: host access to virtual memory
//	ASCENDSIM_PAGEABLE_ASYNC  1 lets asynchronous copies use memory that is not pinned
//	ASCENDSIM_FAIL            CALL:CODE[:AFTER[:COUNT]],...: AFTER calls pass, then COUNT fail (default 1, 0 for all); a CALL named copy is the work itself
//	ASCENDSIM_LOSE            DEVICE[:AFTER]: the device is lost after that many uses
//
// # Who calls it
//
// Tests, on one goroutine at a time. It needs gcc.
package ascendsim
