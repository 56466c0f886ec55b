// Package hixl moves memory between machines with one-sided operations, the way
// an RDMA NIC does, in pure Go over UDP port 4791. On the wire it is RoCEv2: the
// peer may be another hixl, Linux's rdma_rxe or a hardware RoCE NIC.
//
// # The pieces
//
// A [NIC] is opened on one IP address. A [PD] groups what may work together. A
// [Region] is memory of the application that it registered: work requests name
// it by its lkey, peers by its rkey. A [CQ] collects completions. A [QP] is one
// end of a connection: work requests are posted to it, and what became of them
// is a [Completion].
//
// Two ends find each other by RDMA connection management, as programs of librdmacm
// do: one side listens ([NIC.Listen]), the other dials ([NIC.Dial]), and both get a
// [Conn], a queue pair joined with the other's. It runs on QP1 of both NICs, over
// the same UDP port as everything else. Datagram queue pairs are found by
// [NIC.ResolveUD] and [NIC.ListenUD]. Or they exchange an [Address] over any
// connection there is ([ExchangeTCP] does it) and call [QP.Connect] with the
// other's.
//
// A [Context] is the level above, for who wants none of these in hand: [Open] makes
// one, a [Peer] is another context over connections that are made again when they
// break, a [RemoteRegion] is found by its name, and a [Transfer] moves a list of
// pieces and may end with a notification. docs/guide.md begins there.
//
// # Who may call what
//
// Everything may be called from any goroutine. Posting sends on the caller's
// goroutine; a NIC has a goroutine for each receive queue of its transport and one
// for timers, a context one more, a queue pair none. Buffers of a region belong to the NIC from posting to completion, in the sense that what
// they contain meanwhile is undefined (sends) or still changing (reads and
// receives).
//
// # Errors
//
// A wrong call is refused at once, by a typed error that says what was given,
// what is allowed and what to do. Work that fails later arrives as a completion
// whose Err carries the verbs status and number, the peer and the remote place;
// after the first, the queue pair is in the error state and everything else on it
// completes flushed.
package hixl
