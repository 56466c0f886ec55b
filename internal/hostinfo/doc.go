// Package hostinfo finds out what this host offers a RoCEv2 stack on plain
// sockets, by trying it: real sockets, real packets on the loopback interface,
// and what the kernel says of itself. For each thing that is missing it says
// what that costs and how to get it.
//
// It serves `hixl info`, and only commands call it. Each probe opens what it
// needs and closes it before it returns; no goroutine outlives a call. On Linux
// none of them binds UDP port 4791, so that a NIC may open meanwhile; elsewhere
// there is no other way to learn whether it is free. The sizes and ratios in the advice were measured on two
// virtual cores with Linux 6.18; they are meant as a scale, not as a promise.
package hostinfo
