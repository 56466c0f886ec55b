//go:build linux

package matrix

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

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
	nic, err := b.carrier.openNIC(lab.Host4, false)
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

// rpingDies kills the guest's end of an endless rping. Its kernel then asks to
// disconnect, so ours must end too, soon and saying why.
func rpingDies(ctx context.Context, b *Bench, role Role) (string, error) {
	c := rpings(4, 0)
	c.Tool.Theirs = Ends{Server: "rping -s -a {self} -S 1000 -v", Client: "rping -c -a {peer} -S 1000 -v"}
	c.Tool.Ours = Ends{Server: ourLine("rping", "-s -a {self} -S 1000 -V"), Client: ourLine("rping", "-c -a {peer} -S 1000 -V")}
	serverHost, clientHost := b.hosts(&c, role)
	server, err := b.start(ctx, &c, serverHost, clientHost, Server)
	if err != nil {
		return "", err
	}
	defer server.Kill()
	if err := b.awaitServer(ctx, &c, serverHost, server); err != nil {
		return "", err
	}
	client, err := b.start(ctx, &c, clientHost, serverHost, Client)
	if err != nil {
		return "", err
	}
	defer client.Kill()
	ours, guest := server, clientHost.guest
	if role == Client {
		ours, guest = client, serverHost.guest
	}
	b.atDeath(ctx, func() { _, _ = guest.Run(ctx, "killall -9 rping") }) // it shows if that fails
	select {
	case <-ours.Done():
	case <-time.After(b.patience(endLimit)):
		out, _ := endNow(ours)
		return "", wrong("ours does not end: %s", brief(out))
	}
	said, err := ours.Wait()
	return "", (&Tool{Fails: err != nil}).judge("end that lives", said, err, `(?i)disconnect|was ended by the peer`)
}
