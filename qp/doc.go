// Package qp owns queue pairs: their states and the table of legal transitions,
// the check of work requests against protection domain, state and limits, receive
// queues (a queue pair's own, or one shared by many), the lock under which the
// protocol engine (package roce/rc) runs, and the order in which completions
// reach their sinks.
//
// # Who calls it
//
// Applications, through the root package: posting, Modify, Query. The NIC
// (internal/nic): everything it does between [QP.Lock] and [QP.Unlock]. Time is
// an argument; the package reads no clock, starts no goroutine and does no I/O.
//
// # Locks
//
// One lock a queue pair. Under it, as leaves, those of the shared receive queue
// and of the sinks; the NIC's own locks for timers and for late memory are leaves
// under it too. No lock of a queue pair is taken while another's is held.
//
// # Draining
//
// One drainer at a time takes packets out of a queue pair ([QP.BeginDrain]), so
// packets keep their order although they are built and sent outside the lock;
// whoever comes second marks the queue pair and leaves. What has completed is
// shown to the application by the drainer only after the packets of the same
// drain have left: an ACK is on the wire before its receive completes.
package qp
