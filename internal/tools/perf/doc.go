// Package perf is the counterpart of perftest's ib_write_bw, ib_read_bw,
// ib_send_bw, ib_atomic_bw and their _lat siblings: it owns their exchange, the
// traffic of each test in both roles, and the result table. The other end may be
// the original or this package.
//
// # The exchange
//
// In every step the client sends first and the server answers with its own
// message of the same size: the version, page and cache line sizes, the path MTU;
// then rounds of address lines, which double as barriers; after the traffic
// barriers again, the report of bandwidth tests, and "done". It goes over TCP, or
// with -R in SENDs over a first connection of the connection manager, while the
// test runs on further ones, or, with -c UD, on queue pairs that find each other by
// SIDR. [session.run] lists the rounds of each test.
//
// # Data
//
// Perftest does not look at what it moves. Here every completion is checked for
// its status and length, atomics for the values they returned, and where the
// address line shows that the peer is this package too (by a number in its SRQ
// field, which has no meaning for RC, UC and UD), every byte that arrived is
// compared with what the peer sent. Against the original the check is that the
// bytes arrived at all.
//
// # Who calls it
//
// cmd/hixl, by [Run], from any goroutine.
package perf
