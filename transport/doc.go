// Package transport moves batches of RoCEv2 packets between a software NIC and
// something that carries UDP port 4791: a socket, AF_XDP rings, a simulated
// network. It owns the interface [Conn], the batch slots [Rx] and [Tx], the
// capabilities [Caps] and the errors that all carriers share. It decodes and
// seals nothing: packets come sealed (BTH to ICRC) and leave as they came.
//
// One Conn is one local IP address on UDP port 4791. The NIC opens it, reads it
// from whoever drives progress and writes it from whoever posts work; nothing
// else calls it.
//
// # What is on the wire
//
// The ICRC covers header fields that the carrier writes, so the sender must know
// them before it seals:
//
//   - destination port: always 4791;
//   - source port: [Conn.SourcePort] says which is really used for a wanted one;
//   - IPv4 flags: DF set, no fragment;
//   - IPv4 identification: 0 for a single packet and i for packet i (from 0) of
//     a train, when [Caps.KnownID]; with [Caps.FullIPControl] the number is
//     [Tx.ID] for a single packet.
//
// # Trains
//
// A train is several packets of one size (the last may be shorter) for one
// destination in one [Tx] or [Rx], marked by a non-zero Seg. A carrier that can
// send them says so in [Caps.Trains]; that may end at run time, when a device
// turns out not to do it: then [Conn.WriteBatch] returns [ErrTrainsOff] for the
// first train it did not send, and the caller seals those packets again as
// single ones (identification 0). Received trains may appear whenever
// [Caps.RxBuf] is larger than the MTU, whatever the sender did.
//
// # Buffers
//
// Memory of a Tx belongs to the caller and is only read, until WriteBatch
// returns, unless a [Lender] lent it. An Rx slot has storage Buf, owned by the caller; the carrier reads
// straight into it and Data is a part of it. A carrier with [Caps.Lends] needs
// no Buf: Data points into its own memory, lent until the slot is given to
// ReadBatch or [Conn.Release] again. Either way Data is valid until the slot is
// used again, and the caller may write to it.
package transport
