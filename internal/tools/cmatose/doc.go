// Package cmatose is the counterpart of ucmatose of librdmacm: it owns the test
// that opens some connections, sends some messages each way over every one, and
// closes them.
//
// # The test
//
// The client asks for all connections. When they stand, the server sends its
// messages, and the client answers with as many when it has them. The server
// disconnects once it has those.
//
// # Who calls it
//
// cmd/hixl, by [Run], from any goroutine.
package cmatose
