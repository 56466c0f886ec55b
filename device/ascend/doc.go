// Package ascend is device.Driver over the Ascend NPU's own runtime, loaded at run
// time and without cgo: device memory (HBM) for regions, and streams, events and
// values to order transfers with computation.
//
//	d, err := ascend.Open(ascend.Config{Device: 0})
//	…
//	pool, err := staged.New(d, staged.Config{})
//	mem, err := pool.Alloc(1 << 30)
//	region, err := pd.RegisterMemory(mem, hixl.MemoryOptions{Access: …})
//
// # What it needs
//
// libascendcl.so of the CANN toolkit, found by the dynamic loader (source the
// toolkit's set_env.sh) or named in Config.Library, and, for mappings into host
// address space, libascend_hal.so of the driver. Every function is looked up by
// itself: a release that lacks one works but for what needs it, and the use of it
// gives a *device.NotAvailableError. Only linux on amd64 and arm64 has the
// libraries; elsewhere Open says so.
//
// A program that imports this package needs the dynamic loader and is no longer
// static. So nothing else in this module imports it but commands built with
// -tags ascend.
//
// # Threads
//
// The runtime keeps its context per OS thread. A Device has one goroutine locked to
// one thread, on which every call is made, in the order in which goroutines asked;
// calls that would block it are cut into pieces. Ends of work are told by a callback
// of the runtime, on a thread of its own. A second goroutine asks for them where there
// are no callbacks, and looks after streams that have failed without saying so. Close
// ends both.
//
// # Mapping
//
// Device memory is mapped by halHostRegister, else by virtual memory management
// with host access, else not at all; Open tries what works by writing and reading
// a page, and Caps says what it found. The mapping is not cached: device.Mapping
// moves it by aligned words.
//
// # Sharing a process
//
// A framework in the same process may have initialised the runtime before. Then
// Close leaves runtime and device as they are, and only gives back what this
// package made.
package ascend
