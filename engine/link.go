package engine

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/gohixl/hixl"
)

// link is a connection with a remote engine that this one has made.
type link struct {
	at    netip.AddrPort
	view  *view
	ready chan struct{}      // closed when it is connected, or will not be
	life  context.Context    // while it may be connecting
	stop  context.CancelFunc // ends connecting

	// Guarded by the engine's mu.
	state AsyncConnectStatus
	peer  *hixl.Peer
	err   error // why it cannot be used any more, or was not connected
	reqs  int   // asynchronous transfers whose end was not taken
	loose []*hixl.Handle
}

var (
	errNoLink   = fault(StatusNotConnected, "there is no link to it; Connect first")
	errHaveLink = fault(StatusAlreadyConnected, "there is a link to it already; Disconnect first to make a new one")
)

// Connect connects to the engine that listens at remote and learns what memory it
// has registered. The link is one to transfer and notify from here; the remote
// engine needs one of its own for its transfers.
//
// The error is [StatusAlreadyConnected], also for a link that has failed,
// [StatusTimeout], [StatusResourceExhausted] beyond channel_pool.max_channel,
// [StatusParamInvalid], or [StatusFailed], which unwraps to an error of package hixl.
// After an error there is no link.
func (e *Engine) Connect(ctx context.Context, remote string) error {
	return fail("Connect", remote, e.connect(ctx, remote))
}

func (e *Engine) connect(ctx context.Context, remote string) error {
	at, err := parseRemote(remote)
	if err != nil {
		return err
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	e.mu.Lock()
	l, err := e.newLink(at, Connecting)
	e.mu.Unlock()
	if err != nil {
		return err
	}
	if err := e.establish(ctx, l); err != nil {
		e.drop(l)
		return err
	}
	return nil
}

// newLink enters a link that is to be connected. e.mu is held.
func (e *Engine) newLink(at netip.AddrPort, s AsyncConnectStatus) (*link, error) {
	if err := e.openLocked(); err != nil {
		return nil, err
	}
	if old := e.links[at]; old != nil && old.state != ConnectFailed {
		return nil, errHaveLink
	}
	if most := e.opts.Resources.MaxChannel; most > 0 && len(e.links) >= most && e.links[at] == nil {
		return nil, fault(StatusResourceExhausted, "there are %d links, as many as channel_pool.max_channel allows", most)
	}
	l := &link{at: at, view: newView(), ready: make(chan struct{}), state: s}
	l.life, l.stop = context.WithCancel(e.ctx)
	e.links[at] = l
	return l, nil
}

// establish connects a link.
func (e *Engine) establish(ctx context.Context, l *link) error {
	defer close(l.ready)
	defer l.stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	p, err := e.c.Peer(l.at)
	if err == nil {
		if err = p.Connect(ctx); err == nil {
			err = l.view.refresh(ctx, e.c, p)
		}
		if err != nil {
			_ = p.Close()
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case l.state != Connecting && err == nil: // it was left meanwhile
		_ = p.Close()
		err = errNoLink
	case err == nil:
		l.peer, l.state = p, Connected
	case l.state == Connecting:
		l.err, l.state = err, ConnectFailed
	}
	return err
}

// drop takes a link out.
func (e *Engine) drop(l *link) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.links[l.at] == l {
		delete(e.links, l.at)
	}
}

// Disconnect ends a link, working or not. Transfers on it that are not over fail, and
// it waits until they are fenced: until no byte of them can land, here or there.
// When ctx ends before that the link is gone all the same, and the error is
// [StatusTimeout] and unwraps to [hixl.ErrUnfenced]: their memory may not be used for
// something else yet. [StatusNotConnected] means there is no such link.
func (e *Engine) Disconnect(ctx context.Context, remote string) error {
	return fail("Disconnect", remote, e.disconnect(ctx, remote))
}

func (e *Engine) disconnect(ctx context.Context, remote string) error {
	at, err := parseRemote(remote)
	if err != nil {
		return err
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	e.mu.Lock()
	l, err := e.leave(at, Disconnecting)
	e.mu.Unlock()
	if err != nil {
		return err
	}
	return e.end(ctx, l)
}

// leave marks a link as one that ends. e.mu is held.
func (e *Engine) leave(at netip.AddrPort, s AsyncConnectStatus) (*link, error) {
	if err := e.openLocked(); err != nil {
		return nil, err
	}
	l := e.links[at]
	if l == nil || l.state == Disconnecting || l.state == DisconnectPending {
		return nil, errNoLink
	}
	if l.state == ConnectPending { // nobody has begun
		l.stop()
		close(l.ready)
	}
	l.state = s
	return l, nil
}

// end ends a link that was left.
func (e *Engine) end(ctx context.Context, l *link) error {
	l.stop()
	<-l.ready
	e.mu.Lock()
	p, loose := l.peer, slices.Clone(l.loose)
	for _, r := range e.reqs {
		if r.l == l {
			loose = append(loose, r.h)
		}
	}
	e.mu.Unlock()
	defer e.drop(l)
	if p == nil {
		return nil
	}
	_ = p.Close()
	for _, h := range loose {
		if err := h.WaitFenced(ctx); err != nil {
			return err
		}
	}
	return nil
}

// use returns a link that can be used, and its peer. With the option AutoConnect it
// makes one.
func (e *Engine) use(ctx context.Context, remote string) (*link, *hixl.Peer, error) {
	at, err := parseRemote(remote)
	if err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	for {
		l, p, mine, err := e.seek(at)
		switch {
		case err != nil || p != nil:
			return l, p, err
		case mine:
			if err := e.autoConnect(ctx, l); err != nil {
				return nil, nil, err
			}
			continue
		}
		select {
		case <-l.ready:
		case <-e.ctx.Done():
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// autoConnect makes the link of a first transfer.
func (e *Engine) autoConnect(ctx context.Context, l *link) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waits.autoConnect)
	defer cancel()
	err := e.establish(ctx, l)
	if err != nil {
		e.drop(l)
	}
	return err
}

// seek finds a link and its peer. A link without peer is being connected: by the
// caller if it is his, else by somebody else.
func (e *Engine) seek(at netip.AddrPort) (l *link, p *hixl.Peer, mine bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.openLocked(); err != nil {
		return nil, nil, false, err
	}
	l = e.links[at]
	auto := e.opts.AutoConnect
	if l != nil && l.state == Connected {
		if l.err == nil {
			l.err = l.peer.Err()
		}
		if l.err == nil {
			return l, l.peer, false, nil
		}
		if !auto {
			return nil, nil, false, fault(StatusFailed, "the link has failed; Disconnect and Connect again: %w", l.err)
		}
		e.cut(l)
		l = nil
	}
	switch {
	case !auto && l != nil && l.state == ConnectFailed:
		return nil, nil, false, fault(StatusNotConnected, "there is no link to it: %w", l.err)
	case !auto:
		return nil, nil, false, errNoLink
	case l == nil || l.state == ConnectFailed:
		l, err = e.newLink(at, Connecting)
		return l, nil, err == nil, err
	case l.state == Disconnecting || l.state == DisconnectPending:
		return nil, nil, false, errNoLink
	}
	return l, nil, false, nil
}

// cut ends a link at once. e.mu is held.
func (e *Engine) cut(l *link) {
	if l.peer != nil {
		_ = l.peer.Close()
	}
	if e.links[l.at] == l {
		delete(e.links, l.at)
	}
}

// latch notes that a link has failed, if it is the link's failure: it cannot be used
// until it is made anew. A transfer that was canceled is none.
func (e *Engine) latch(l *link, err error) error {
	if err == nil {
		return nil
	}
	s := classify(err)
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := (*hixl.TransferError)(nil); errors.As(err, &t) && !t.Fenced && t.Handle != nil {
		l.loose = append(l.loose, t.Handle)
	}
	if s != StatusTimeout && s != StatusFailed || s == StatusFailed && errors.Is(err, hixl.ErrCanceled) {
		return err
	}
	if l.err == nil {
		l.err = err
	}
	if e.opts.AutoConnect {
		e.cut(l)
	}
	return err
}
