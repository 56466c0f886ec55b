// Command verbs is our end of the guests' tool of that name, for where no other
// process of the lab's can be: verbs LOCAL on|off serve, or verbs LOCAL on|off
// HOST [KEY=VALUE ...], with trains on or off. It prints what the tool prints, and
// on standard error what the NIC sent.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/interop/verbs"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: verbs LOCAL on|off serve|HOST [KEY=VALUE ...]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2] == "off", os.Args[3], strings.Join(os.Args[4:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "verbs:", err)
		os.Exit(1)
	}
}

func run(local string, noTrains bool, host, words string) error {
	addr, err := netip.ParseAddr(local)
	if err != nil {
		return err
	}
	nic, err := hixl.OpenNIC(hixl.Config{Address: addr, NoTrains: noTrains})
	if err != nil {
		return err
	}
	if host == "serve" {
		err = serve(nic, local)
	} else {
		err = act(nic, host, words)
	}
	s := nic.Stats()
	fmt.Fprintf(os.Stderr, verbs.SentFormat+"\n", s.TxPackets, s.TxTrains)
	return errors.Join(err, nic.Close())
}

func serve(nic *hixl.NIC, local string) error {
	l, err := net.Listen("tcp", net.JoinHostPort(local, verbs.Port))
	if err != nil {
		return err
	}
	defer l.Close()
	return verbs.Serve(context.Background(), nic, l)
}

func act(nic *hixl.NIC, host, words string) error {
	c, err := verbs.Parse(words)
	if err != nil {
		return err
	}
	r, err := verbs.Act(context.Background(), nic, host, c)
	if r != nil {
		fmt.Print(r)
	}
	return err
}
