// Package pingpong is the counterpart of ibv_rc_pingpong, ibv_uc_pingpong and
// ibv_ud_pingpong: it owns their exchange over TCP, the ball that goes to and
// fro, and the lines of their result.
//
// # The exchange
//
// The client sends 52 bytes, "%04x:%06x:%06x:%s" of LID, QPN, first PSN and GID as
// 32 digits, with a NUL; the server answers with its own; the client sends "done"
// with a NUL, closes the connection and plays the first ball.
//
// # Who calls it
//
// cmd/hixl, by [Run], from any goroutine.
package pingpong
