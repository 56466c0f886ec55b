// Package udp carries RoCEv2 over ordinary UDP sockets. It owns the sockets of
// one local address: one bound to port 4791 that only receives, and a few that
// only send, each from a source port of its own in 0xC000..0xFFFF. A NIC opens
// it; anyone may read [Conn.Info].
//
// On Linux the sockets are unconnected, with the don't-fragment bit and without
// path-MTU fallback, because that is the one kind of UDP socket whose IPv4
// identification is known: 0, or the index in a train (§1.5). Batches go by
// sendmmsg and recvmmsg, trains by UDP_SEGMENT and UDP_GRO where the kernel has
// them. Reads park in the runtime's poller; the package starts no goroutine.
// Nothing is allocated per batch.
//
// On other systems package net's sockets are used: a packet a call, no ECN, and
// an identification that the sender cannot know, so that over IPv4 only a peer
// that accepts any identification takes the packets. One goroutine per Conn
// reads.
//
// A UDP socket hides the IPv4 identification and flags of what it receives:
// [transport.Caps.HeadersVisible] is false. Address translation between the
// hosts changes covered fields and breaks every ICRC.
package udp
