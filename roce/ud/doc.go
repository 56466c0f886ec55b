// Package ud is the unreliable datagram service: single-packet SENDs, with and
// without immediate, to any peer that an address handle names, under the rule
// of Q_Keys; and the 40-byte area for the network header at the start of every
// receive (spec §1.10, §4.16, §5.1). QP1, the general services interface, is a
// datagram queue pair with a well-known number and Q_Key (§5.2).
//
// Like the other engines it is sans-IO and touches no region, and is called by
// package qp under the queue pair's lock.
package ud
