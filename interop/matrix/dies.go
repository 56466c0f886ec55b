//go:build linux

package matrix

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/interop/lab"
	"github.com/gohixl/hixl/interop/verbs"
)

// dyingWrites outlast the passive end.
const dyingWrites = "op=write size=4000 count=16000 timeout=12 retries=3"

// lastPackets is how many packets the passive end lives to see.
const lastPackets = 200

// atDeath runs f when so many packets have crossed the bridge.
func (b *Bench) atDeath(ctx context.Context, f func()) {
	if await(ctx, func() bool { return b.Lab.Switch.Total().RoCE >= lastPackets }) == nil {
		f()
	}
}

// peerDies kills the passive end while writes are under way. The active one must
// say that its retries were in vain.
func peerDies(ctx context.Context, b *Bench, role Role) (string, error) {
	vc, err := verbs.Parse(dyingWrites)
	if err != nil {
		return "", err
	}
	nic, err := openNIC(lab.Host4, false)
	if err != nil {
		return "", err
	}
	var text string
	if role == Client {
		text, err = b.guestDies(ctx, nic, vc)
	} else {
		text, err = b.weDie(ctx, nic, vc)
	}
	if err = errors.Join(err, nic.Close()); err != nil {
		return "", err
	}
	if !strings.Contains(text, "status=12") {
		return "", wrong("no exceeded retries: %s", brief(text))
	}
	return "", nil
}

// guestDies ends the tool in the guest.
func (b *Bench) guestDies(ctx context.Context, nic *hixl.NIC, vc verbs.Case) (string, error) {
	guest := b.Lab.Guests[0]
	if err := b.serveVerbs(ctx, guest); err != nil {
		return "", err
	}
	go b.atDeath(ctx, func() { _, _ = guest.Run(ctx, "killall -9 verbs") }) // it shows if that fails
	r, err := verbs.Act(ctx, nic, guest.IPv4.String(), vc)
	if r == nil {
		return "", err
	}
	return r.String(), nil // that the tool is gone from TCP too is no news
}

// weDie ends our NIC.
func (b *Bench) weDie(ctx context.Context, nic *hixl.NIC, vc verbs.Case) (string, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(lab.Host4, verbs.Port))
	if err != nil {
		return "", err
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- verbs.Serve(ctx, nic, l) }()
	go b.atDeath(ctx, func() { _ = nic.Close() })                          // it is closed again, with a look
	out, _ := b.Lab.Guests[0].Run(ctx, "verbs "+lab.Host4+" "+vc.String()) // it fails for want of our end
	cancel()
	return fmt.Sprint(out.Stdout, out.Stderr, "our end: ", <-served), nil
}
