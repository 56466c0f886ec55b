//go:build unix

// Command guestagent serves commands to the lab in a guest: guestagent PORT.
package main

import (
	"fmt"
	"net"
	"os"

	"github.com/gohixl/hixl/interop/agent"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: guestagent PORT")
		os.Exit(2)
	}
	l, err := net.Listen("tcp", ":"+os.Args[1])
	if err == nil {
		err = agent.Serve(l)
	}
	fmt.Fprintln(os.Stderr, "guestagent:", err)
	os.Exit(1)
}
