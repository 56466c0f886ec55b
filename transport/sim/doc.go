// Package sim is a network of simulated hosts on virtual time. It owns the
// links, their faults and the hosts' receive queues, and gives each host a
// [transport.Conn]. Packets are real IP packets inside, so corruption reaches
// every header bit that the ICRC covers and a receiver sees identification and
// flags as they arrived.
//
// Two ways to drive it, not to be mixed:
//
//   - stepping: one goroutine sends, asks [Network.Next] for the time of the next
//     event and calls [Network.Advance]. The same seed and the same calls give
//     the same run, packet for packet; [Network.Trace] proves it.
//   - live: [Network.Run] ties virtual time to the clock (or to the fake clock of
//     testing/synctest), and goroutines use the Conns as they would use sockets,
//     blocking reads included.
//
// Tests and the benchmark's simulated mode import it.
package sim
