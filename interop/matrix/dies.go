//go:build linux

package matrix

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/interop/lab"
	"github.com/gohixl/hixl/interop/verbs"
)

// dyingWrites outlast the passive end.
const dyingWrites = "op=write size=100000 count=2000 timeout=12 retries=3"

// aliveFor is how long the passive end lives.
const aliveFor = 100 * time.Millisecond

// peerDies kills the passive end while writes are under way. The active one must
// say that its retries were in vain.
func peerDies(ctx context.Context, b *Bench, role Role) (string, error) {
	vc, err := verbs.Parse(dyingWrites)
	if err != nil {
		return "", err
	}
	nic, err := hixl.OpenNIC(hixl.Config{Address: netip.MustParseAddr(lab.Host4)})
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
	kill := time.AfterFunc(aliveFor, func() { _, _ = guest.Run(ctx, "killall -9 verbs") }) // it shows if that fails
	defer kill.Stop()
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
	kill := time.AfterFunc(aliveFor+500*time.Millisecond, func() { _ = nic.Close() }) // it is closed again, with a look
	defer kill.Stop()
	out, _ := b.Lab.Guests[0].Run(ctx, "verbs "+lab.Host4+" "+vc.String()) // it fails for want of our end
	cancel()
	<-served
	return out.Stdout + out.Stderr, nil
}
