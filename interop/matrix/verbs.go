//go:build linux

package matrix

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/interop/lab"
	"github.com/gohixl/hixl/interop/verbs"
)

// ErrWrong is what a cell that shows something else than it should unwraps to.
var ErrWrong = errors.New("matrix: not as it should be")

// ErrDamage is what wrong bytes unwrap to, in memory or in a packet. A cell that
// shows some is not run again.
var ErrDamage = fmt.Errorf("%w: wrong bytes", ErrWrong)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamage}, args...)...)
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrWrong}, args...)...)
}

// hostAddr is our address of a family.
func hostAddr(family int) string {
	if family == 6 {
		return lab.Host6
	}
	return lab.Host4
}

// verbs runs a Verbs cell.
func (b *Bench) verbs(ctx context.Context, c *Cell, role Role) (string, error) {
	vc, err := verbs.Parse(c.Verbs)
	if err != nil {
		return "", err
	}
	vc.Family = c.family()
	if b.emulated() && vc.Timeout == verbs.Default.Timeout {
		vc.Timeout = slowTimeout
	}
	switch {
	case c.Veth:
		return b.verbsOverVeth(ctx, c, vc, role)
	case role == None:
		return b.verbsOfGuests(ctx, c, vc)
	}
	nic, err := b.carrier.openNIC(hostAddr(vc.Family), c.Trains == "off")
	if err != nil {
		return "", err
	}
	r, err := b.verbsWith(ctx, nic, vc, role)
	stats := nic.Stats()
	if err = errors.Join(err, nic.Close()); err != nil {
		return "", err
	}
	detail := fmt.Sprintf("%d packets sent", stats.TxPackets)
	if stats.TxTrains > 0 {
		detail += fmt.Sprintf(", %d trains", stats.TxTrains)
	}
	if err := b.judgeTrains(c, vc, role, stats.TxTrains); err != nil {
		return detail, err
	}
	return detail, c.Want.judge(vc, r, role == Client)
}

// sendsBulk reports whether most bytes come from our end.
func sendsBulk(vc verbs.Case, role Role) bool { return (vc.Op == "read") == (role == Server) }

// judgeTrains expects trains where ours sends bulk and they are on.
func (b *Bench) judgeTrains(c *Cell, vc verbs.Case, role Role, trains uint64) error {
	switch {
	case c.Trains == "off" && trains > 0:
		return wrong("%d trains although they are off", trains)
	case b.carrier != Sockets && trains > 0:
		return wrong("%d trains on %v, which knows none", trains, b.carrier)
	case c.Trains == "on" && sendsBulk(vc, role) && trains == 0 && b.carrier == Sockets:
		return wrong("no trains although they are on")
	}
	return nil
}

// slowTimeout is the ACK timeout for emulated processors, half a second.
const slowTimeout = 17

func (b *Bench) verbsWith(ctx context.Context, nic *hixl.NIC, vc verbs.Case, role Role) (*verbs.Result, error) {
	guest := b.Lab.Guests[0]
	if role == Client {
		if err := b.serveVerbs(ctx, guest); err != nil {
			return nil, err
		}
		return verbs.Act(ctx, nic, guest.Addr(vc.Family).String(), vc)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(hostAddr(vc.Family), verbs.Port))
	if err != nil {
		return nil, err
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- verbs.Serve(ctx, nic, l) }()
	out, err := guest.Run(ctx, "verbs "+hostAddr(vc.Family)+" "+vc.String())
	if err != nil {
		cancel()
		return nil, errors.Join(err, <-served)
	}
	if err := <-served; err != nil {
		return nil, err
	}
	return verbs.ParseResult(out.Stdout)
}

func (b *Bench) verbsOfGuests(ctx context.Context, c *Cell, vc verbs.Case) (string, error) {
	client, server := b.Lab.Guests[0], b.Lab.Guests[1]
	if err := b.serveVerbs(ctx, server); err != nil {
		return "", err
	}
	out, err := client.Run(ctx, "verbs "+server.Addr(vc.Family).String()+" "+vc.String())
	if err != nil {
		return "", err
	}
	r, err := verbs.ParseResult(out.Stdout)
	if err != nil {
		return "", err
	}
	return "", c.Want.judge(vc, r, true)
}

// judge compares what was seen with what should be. rxe says that rdma_rxe is the
// passive end.
func (w Want) judge(c verbs.Case, r *verbs.Result, rxe bool) error {
	if w.Status != 0 {
		return w.judgeFailure(c, r, rxe)
	}
	if len(r.WCs) != c.Count {
		return wrong("%d of %d operations completed", len(r.WCs), c.Count)
	}
	for i, wc := range r.WCs {
		if wc.Status != 0 || wc.ID != i {
			return wrong("completion %d: %v", i, wc)
		}
	}
	all := verbs.Slots{Final: c.Count}
	switch {
	case r.Slots != all:
		return damaged("the active end's memory: %v", r.Slots)
	case w.Nothing:
		if r.PeerSlots != (verbs.Slots{Initial: c.Count}) || len(r.PeerWCs) > 0 {
			return wrong("something arrived: %v, %d receives", r.PeerSlots, len(r.PeerWCs))
		}
		return nil
	case w.Lost:
		if r.PeerSlots.Final == 0 {
			return wrong("nothing arrived: %v", r.PeerSlots)
		}
	case r.PeerSlots != all:
		return damaged("the passive end's memory: %v", r.PeerSlots)
	}
	return w.judgeReceives(c, r, rxe)
}

func (w Want) judgeReceives(c verbs.Case, r *verbs.Result, rxe bool) error {
	want := 0
	if c.Receives() {
		want = c.Count
	}
	if got := len(r.PeerWCs); got > want || got < want && !w.Lost {
		return wrong("%d of %d receives completed", got, want)
	}
	for i, wc := range r.PeerWCs {
		id := i
		if w.Lost { // the immediate tells which message it was
			id = wc.ID
		}
		wanted := verbs.WC{ID: id, Op: verbs.Received, Len: c.Size}
		if c.Op == "write-imm" {
			wanted.Op = verbs.ReceivedWriteImm
		}
		if imm, has := c.Immediate(id); has {
			wanted.Imm = fmt.Sprintf("%x", imm)
			if w.Lost {
				wanted.Imm = wc.Imm
			}
		}
		if c.Op == "send-inv" && !rxe { // rdma_rxe has no flag for it
			wanted.Inv = "right"
		}
		if c.QP == "ud" {
			wanted.GRH = "right"
		}
		if wc != wanted {
			return wrong("receive %d: %v instead of %v", i, wc, wanted)
		}
	}
	return nil
}

func (w Want) judgeFailure(c verbs.Case, r *verbs.Result, rxe bool) error {
	status, peer := w.Status, w.PeerStatus
	if rxe && w.RxeStatus != 0 {
		status, peer = w.RxeStatus, w.RxePeerStatus
	}
	switch {
	case len(r.WCs) == 0 || r.WCs[0].Status != status:
		return wrong("status %d expected: %v", status, r.WCs)
	case peer != 0 && (len(r.PeerWCs) == 0 || r.PeerWCs[0].Status != peer):
		return wrong("status %d expected at the passive end: %v", peer, r.PeerWCs)
	}
	untouched := verbs.Slots{Initial: c.Count}
	switch {
	case peer != 0:
		return nil // bytes went into the receive until it was full
	case c.Op == "read": // which has the passive end's memory as it was
		untouched = verbs.Slots{Final: c.Count}
	}
	if r.PeerSlots != untouched {
		return damaged("the passive end's memory was touched: %v", r.PeerSlots)
	}
	return nil
}
