//go:build linux

package matrix

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gohixl/hixl/interop/agent"
	"github.com/gohixl/hixl/interop/lab"
	"github.com/gohixl/hixl/interop/verbs"
)

// The two ends of a veth pair in a guest: rdma_rxe has one, a namespace for our
// program the other. The kernel hands a train over as it is, so that rdma_rxe's
// socket has to cut it, while on the bridge the sender's kernel cuts it.
const (
	vethSpace  = "ours"
	vethDevice = "va"
	vethOurs   = "vb"
	vethHixl   = "/tmp/hixl-verbs"
)

// vethAddrs are rdma_rxe's and our address of a family.
func vethAddrs(family int) (theirs, ours string) {
	if family == 6 {
		return "fd79::1", "fd79::2"
	}
	return "10.79.0.1", "10.79.0.2"
}

// vethSetup makes the pair, once a boot. The shell would take busybox's ip, which
// knows no namespaces.
var vethSetup = fmt.Sprintf(`test -e /sys/class/infiniband/rxe1 && exit
set -e
mkdir -p /run/netns
/usr/bin/ip netns add %[1]s
/usr/bin/ip link add %[2]s mtu %[4]d type veth peer name %[3]s mtu %[4]d netns %[1]s
/usr/bin/ip addr add 10.79.0.1/24 dev %[2]s
/usr/bin/ip addr add fd79::1/64 dev %[2]s nodad
/usr/bin/ip link set %[2]s up
/usr/bin/ip -n %[1]s link set lo up
/usr/bin/ip -n %[1]s addr add 10.79.0.2/24 dev %[3]s
/usr/bin/ip -n %[1]s addr add fd79::2/64 dev %[3]s nodad
/usr/bin/ip -n %[1]s link set %[3]s up
rdma link add rxe1 type rxe netdev %[2]s`, vethSpace, vethDevice, vethOurs, lab.DefaultMTU)

// vethSent is what has come out of our end of the pair, a train counted once.
var vethSent = fmt.Sprintf("/usr/bin/ip netns exec %s cat /sys/class/net/%s/statistics/tx_packets", vethSpace, vethOurs)

// verbsOverVeth runs a Verbs cell whose ends are both in the first guest.
func (b *Bench) verbsOverVeth(ctx context.Context, c *Cell, vc verbs.Case, role Role) (string, error) {
	guest := b.Lab.Guests[0]
	if _, err := guest.Run(ctx, vethSetup); err != nil {
		return "", err
	}
	if _, err := guest.Run(ctx, "test -x "+vethHixl); err != nil { // it has booted since
		if err := guest.Put(ctx, filepath.Join(b.Dir, verbsBinary), vethHixl); err != nil {
			return "", err
		}
	}
	before, err := number(guest.Run(ctx, vethSent))
	if err != nil {
		return "", err
	}
	run := b.vethActive
	if role == Server {
		run = b.vethPassive
	}
	text, said, err := run(ctx, guest, c, vc)
	if err != nil {
		return "", err
	}
	after, err := number(guest.Run(ctx, vethSent))
	if err != nil {
		return "", err
	}
	r, err := verbs.ParseResult(text)
	if err != nil {
		return "", err
	}
	var packets, trains uint64
	if _, err := fmt.Sscanf(said, verbs.SentFormat, &packets, &trains); err != nil {
		return "", wrong("our end does not say what it sent: %s", brief(said))
	}
	frames := after - before
	detail := fmt.Sprintf("%d packets sent, %d trains, %d frames on the veth pair with those of TCP", packets, trains, frames)
	if c.Trains == "on" && sendsBulk(vc, role) && frames >= packets {
		return detail, wrong("trains were cut before the veth pair")
	}
	if err := b.judgeTrains(c, vc, role, trains); err != nil {
		return detail, err
	}
	return detail, c.Want.judge(vc, r, role == Client)
}

// vethActive runs our end as the active one and returns what it shows.
func (b *Bench) vethActive(ctx context.Context, guest *lab.Guest, c *Cell, vc verbs.Case) (text, said string, err error) {
	if err := b.serveVerbs(ctx, guest); err != nil {
		return "", "", err
	}
	theirs, ours := vethAddrs(vc.Family)
	out, err := guest.Run(ctx, vethCommand(ours, c.Trains, theirs+" "+vc.String()))
	return out.Stdout, out.Stderr, err
}

// vethPassive runs our end as the passive one and returns what the other shows.
func (b *Bench) vethPassive(ctx context.Context, guest *lab.Guest, c *Cell, vc verbs.Case) (text, said string, err error) {
	_, ours := vethAddrs(vc.Family)
	p, err := guest.Start(ctx, vethCommand(ours, c.Trains, "serve"))
	if err != nil {
		return "", "", err
	}
	defer p.Kill()
	if err := await(ctx, func() bool { return b.listensOverVeth(ctx, guest, p) }); err != nil {
		return "", "", err
	}
	out, err := guest.Run(ctx, "verbs "+ours+" "+vc.String())
	if err != nil {
		p.Kill()
	}
	served, end := p.Wait()
	return out.Stdout, served.Stderr, errors.Join(err, end)
}

// listensOverVeth reports whether our end is ready, or has ended.
func (b *Bench) listensOverVeth(ctx context.Context, guest *lab.Guest, p *agent.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
	}
	_, err := guest.Run(ctx, fmt.Sprintf("/usr/bin/ip netns exec %s sh -c %q", vethSpace, listening(verbs.Port)))
	return err == nil
}

// vethCommand is a command line of our end in its namespace.
func vethCommand(local, trains, rest string) string {
	return fmt.Sprintf("/usr/bin/ip netns exec %s %s %s %s %s", vethSpace, vethHixl, local, trains, rest)
}

// number reads what a command printed.
func number(r agent.Result, err error) (uint64, error) {
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(r.Stdout), 10, 64)
}
