// Package rc is the reliable connection: both halves of an RC queue pair's
// protocol as a value. The requester numbers, segments, sends and retries work
// requests and turns responses into completions; the responder checks, orders
// and answers requests.
//
// # What it owns
//
// PSN tracking, ACK and NAK, RNR, timeouts and retries, READ and atomic replay,
// the window, and the order of completions. It is sans-IO: packets and time come
// in as arguments, packets and instructions go out. It holds no lock, clock or
// goroutine and reads and writes no region: it says where bytes go ([wr.Work]) and
// come from ([wr.Out]), and learns by [RC.Commit] and [RC.Fetched] that they moved.
//
// # Who calls it
//
// Only package qp, under the queue pair's lock. The calling order is
//
//	Post                      a work request was posted
//	Accept … Commit           a packet arrived; its Work was done
//	Expire                    Deadline has passed
//	Drain … Fetched           after any of these: take the packets to send
//	TakeCompletions           after the packets have left
//
// Spurious calls are safe. Commit and Fetched may come at once, or much later
// and in any order.
//
// # Loss
//
// A sequence NAK, or a response that passes a missing one, resends from the gap on
// at once and makes the window smaller (see type window in the source). When there is
// no answer at all, the oldest packet is sent alone, as a probe. Only waits of the
// whole configured timeout count as retries: a connection fails after RetryCount+1 of
// them without any progress, and never earlier.
//
// # Numbers
//
// PSNs are carried inside as 64-bit sequence numbers that never wrap; the wire's
// 24 bits are extended against the window they must fall in (spec §0, §4.2).
package rc
