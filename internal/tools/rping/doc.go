// Package rping is the counterpart of rping of librdmacm: it owns the game in
// which the server fetches the client's ball by READ and brings it back by WRITE,
// and the messages by which each tells the other that it is its turn.
//
// # The game
//
// Both ends keep a receive of 16 bytes posted: address, rkey and length of a
// buffer, big-endian. The client tells where its source is; the server READs it
// and answers with a message of no meaning; the client tells where its sink is;
// the server WRITEs what it had read there and answers again. When the client has
// had enough, it disconnects.
//
// # Who calls it
//
// cmd/hixl, by [Run], from any goroutine.
package rping
