// Package peerlink is the life of the connection between two contexts as a value:
// when to dial, how long to wait after a failure, when to give up, when to look
// whether a silent peer is alive. Time, randomness and what happened come in as
// arguments, what to do comes out. It does no I/O, holds no lock and starts
// nothing; its owner locks around every call.
package peerlink
