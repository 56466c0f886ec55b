// Package roce is the RoCEv2 wire as values: the base transport header and its
// extension headers, one table of the 256 opcodes that drives decoding,
// encoding, names and length rules, 24-bit packet sequence and queue pair
// numbers, IPv4, IPv6 and UDP headers, and the invariant CRC that covers them.
//
// Nothing here opens a socket, reads a clock, starts a goroutine, locks or
// logs, and nothing on the packet path allocates; any package and any
// goroutine may call it. A [Packet] has one owner at a time. Decoding is total:
// any byte string gives a packet or a typed error, never a panic.
package roce
