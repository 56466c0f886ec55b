// Package tools owns what the counterparts of the stock RDMA tools have in
// common: how they find their peer and which address they put the NIC on, the
// messages of an exchange with a bound on everybody's patience, the watch over
// traffic that may stall, and the errors they end with.
//
// # Who calls it
//
// The packages below it, one for each family of tools, and through them cmd/hixl.
// They speak the wire formats of the originals, so that the other end may be one
// of those; each has one entry point, Run, which may be called from any goroutine
// and returns when the run is over and everything is closed.
//
// # What a peer may do
//
// Exchanges come from a network. Every message has a fixed size that is known
// before it is read, every number is checked before it is used, nothing is
// allocated by a length that a peer told, and a peer that says nothing is given
// up after Common.Patience.
package tools
