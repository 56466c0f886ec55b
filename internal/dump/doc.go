// Package dump reads packet captures and says what RoCEv2 they hold. [Reader]
// takes pcap and pcapng files apart, [Run] prints a line or a JSON object a
// packet with the verdict on its ICRC.
//
// The command line tool calls Run, tests all over the module use Reader. A
// Reader belongs to one goroutine; nothing here starts one. Captures are not
// trusted: memory grows with the bytes that are there, not with the lengths
// that a file claims.
package dump
