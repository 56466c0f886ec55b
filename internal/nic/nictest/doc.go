// Package nictest is a fabric of stepped NICs on a simulated network: everything
// from work requests to IP packets is the code that runs on sockets, driven by
// one goroutine on virtual time, so that a seed replays a run exactly.
//
// Tests import it. A Fabric and all that belongs to it is for one goroutine.
package nictest
