// Package nic is the software NIC: it joins queue pairs (package qp) with a
// transport and with memory. It owns the clock, the goroutines, the table of queue
// pair numbers, the checks a packet must pass before a queue pair sees it, the
// ICRC, the copies between packets and regions, and the timers.
//
// # Who calls it
//
// The root package, for applications, from any goroutine: posting and everything
// else about queue pairs. Memories, from any goroutine: [NIC.MemoryDone].
// Completion queues that are being waited on: [NIC.Progress].
//
// # Goroutines
//
// A started NIC ([NIC.Start]) has two: one receives when nobody polls, one serves
// timers and late memory. Sending takes none: whoever posts drains the queue pair
// and writes its packets. A stepped NIC has none at all: its owner calls
// [NIC.Poll] and [NIC.Next], and with a clock of its own and a simulated network
// every run replays exactly.
//
// # The way of a packet in
//
// One batch is read, the clock once. Each packet is decoded in place, judged in
// the order of §1.13, its ICRC checked, and then, under its queue pair's lock,
// accepted and placed. At the end of the batch every queue pair that was touched
// is drained once and what it says leaves in one write; only then are completions
// published.
//
// # The way of a packet out
//
// Drain, under the lock: headers and inline data go into a staging buffer. Then,
// outside it, payload is fetched behind its header, the packet sealed for the
// IPv4 identification it will carry, and consecutive packets of one size to one
// peer become a train. Packets inside a long message that differ only in their PSN
// come from the engine as one entry, a run, and are made in one go, each header from
// the one of the run. A packet whose payload comes from memory that finishes
// later is held, with all that follow it in its queue pair, until it is complete:
// nothing overtakes.
//
// # Locks
//
// NIC (control only) → queue pair → timers, late memory, completion queues, which
// are leaves. The receive lock is above the queue pairs' and held by whoever
// reads the transport.
package nic
