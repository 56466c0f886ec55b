// Package tap shows what passes a carrier: [Wrap] puts a tap around any
// [transport.Conn], and everything sent and received is written as pcapng, which
// Wireshark and `hixl dump` read. It owns the capture, not the traffic: when the
// capture cannot be written it ends, [Tap.Err] says why, and packets flow on.
//
// Packets are whole Ethernet frames. What a socket hides is filled in as it is
// known to be: TTL 64, don't-fragment, IPv4 identification 0 or the index in the
// train; made-up Ethernet addresses that contain the IP address. So the ICRC of a
// received packet from a foreign sender, which chose another identification, looks
// wrong over a UDP socket; over carriers with visible headers all are as received.
//
// A tap costs a copy of everything and writes from the caller's goroutine, one at
// a time; it is for looking, not for measuring.
package tap
