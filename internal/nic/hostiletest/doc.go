// Package hostiletest throws packets at a live NIC that no honest peer would send:
// valid ones with fields changed, in and out of sequence, sealed rightly and
// wrongly, from the right address and from others, recordings bent and replayed.
//
// Beside the NIC runs a small model of the wire, of the responder and of the
// requester, written from the protocol's rules (§1 to §4 of the wire reference)
// and sharing no code with the engine. After every packet the two must agree:
// memory to the last byte, queue pair states, completions, responses, counters.
//
// Everything is in the tests; nothing imports the package.
package hostiletest
