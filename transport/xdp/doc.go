// Package xdp carries RoCEv2 on raw Ethernet frames, through AF_XDP sockets. A
// program on the link gives UDP port 4791 of one local address to the rings of
// this package, and leaves everything else to the kernel. It is for who needs the
// IP header, to check all 32 bits of the ICRC over IPv4, or a higher rate of
// single packets than UDP sockets have. Users import it and pass the [Conn] in
// hixl.Config.Transport, or how to open it in OpenTransport; the root package does not
// know it.
//
// # What it takes and what it leaves
//
// The program takes whole UDP datagrams to port 4791 of the address, IPv4 without
// options or IPv6 without extension headers, behind up to two VLAN tags. All else
// goes the usual way: ARP and neighbour discovery, DNS, SSH, fragments, other
// addresses. What belongs to us and went that way all the same (reassembled
// fragments, packets of a receive queue that has no socket, packets through
// another link) arrives on an ordinary UDP socket, which also owns the port: a
// second NIC on the address fails to open. Packets to this host itself, or routed
// through another link, leave through a raw socket.
//
// A frame never leaves without the kernel's consent to its route: next hop, source
// and MTU are the kernel's, and so is the hardware address of the neighbour, which
// the kernel is asked to resolve when it is missing. Frames wait for that, a
// bounded number of them. Changes of link, addresses, routes and neighbours take
// effect when the kernel announces them; [Config.Notify] hears of those that an
// operator should know.
//
// # Memory
//
// Received packets lie in memory that the kernel filled, lent to the reader
// (transport.Caps.Lends). It stays mapped after Close until all of it was given
// back by ReadBatch or Release.
//
// # Goroutines, limits
//
// A Conn has two goroutines: one reads what the kernel announces, the other acts
// on it. Reads and writes run on their caller's. Only Linux has AF_XDP: elsewhere
// [Open] returns an error that unwraps to [ErrUnsupported]. The link must be
// Ethernet; loopback is not, there the UDP transport is the better one.
package xdp
