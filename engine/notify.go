package engine

import (
	"context"

	"github.com/gohixl/hixl"
)

// maxNotifies is how many notifications of one link wait to be taken.
const maxNotifies = hixl.DefaultNotifications

// guest is a link that a remote engine has made.
type guest struct {
	p     *hixl.Peer
	left  bool         // it was gone when it was last looked at
	first []NotifyDesc // taken to see whether there is one
}

// notification is the notification as package hixl has it; nil of nil.
func (n *NotifyDesc) notification() (*hixl.Notification, error) {
	switch {
	case n == nil:
		return nil, nil
	case len(n.Name) > MaxNotify || len(n.Msg) > MaxNotify:
		return nil, invalid("a notification with a name of %d bytes and a message of %d, allowed: up to %d each", len(n.Name), len(n.Msg), MaxNotify)
	}
	return &hixl.Notification{Name: n.Name, Data: []byte(n.Msg)}, nil
}

// SendNotify tells the remote engine something when all transfers that were begun
// before on this link are in memory, and returns when the remote engine has it. If
// 4096 notifications of this link wait there already it waits for room; the error
// is [StatusResourceExhausted] if there was none in time.
func (e *Engine) SendNotify(ctx context.Context, remote string, n NotifyDesc) error {
	return fail("SendNotify", remote, e.sendNotify(ctx, remote, n))
}

func (e *Engine) sendNotify(ctx context.Context, remote string, n NotifyDesc) error {
	note, err := n.notification()
	if err != nil {
		return err
	}
	l, p, err := e.use(ctx, remote)
	if err != nil {
		return err
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	return e.latch(l, p.Notify(ctx, *note))
}

// GetNotifies takes all notifications that have arrived, in order for each link. It
// does not wait.
func (e *Engine) GetNotifies() ([]NotifyDesc, error) {
	if err := e.open(); err != nil {
		return nil, fail("GetNotifies", "", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []NotifyDesc
	for _, g := range e.guests {
		all = append(all, g.first...)
		g.first = nil
		for range maxNotifies { // one that never stops does not keep the others waiting
			if !g.take(&all) {
				break
			}
		}
	}
	e.sweep()
	return all, nil
}

// take appends the next notification, if there is one.
func (g *guest) take(all *[]NotifyDesc) bool {
	n, ok := g.p.TryNotification()
	if ok && !n.IsImm { // an immediate is not an engine's
		*all = append(*all, NotifyDesc{Name: n.Name, Msg: string(n.Data)})
	}
	return ok
}

// receive takes in those who connect, until the engine is finalized.
func (e *Engine) receive(l *hixl.PeerListener) {
	for {
		p, err := l.Accept(e.ctx)
		if err != nil {
			return
		}
		e.mu.Lock()
		e.sweep()
		e.guests = append(e.guests, &guest{p: p})
		e.mu.Unlock()
	}
}

// sweep forgets guests that have left, once all that they have told was taken. They
// have been gone at the last sweep too, so that nothing is on its way. e.mu is held.
func (e *Engine) sweep() {
	kept := e.guests[:0]
	for _, g := range e.guests {
		gone := g.p.State() != hixl.PeerUp && g.p.State() != hixl.PeerConnecting
		if gone && g.left && len(g.first) == 0 && !g.take(&g.first) {
			_ = g.p.Close()
			continue
		}
		g.left = gone
		kept = append(kept, g)
	}
	clear(e.guests[len(kept):])
	e.guests = kept
}
