//go:build !linux

package bench

import "net"

// setCongestion leaves the system's choice, which has no name here.
func setCongestion(*net.TCPConn) string { return "" }
