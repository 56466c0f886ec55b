package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/gohixl/hixl"
)

// MaxRequests is how many asynchronous transfers of an engine there may be whose end
// was not taken.
const MaxRequests = 1 << 16

// request is an asynchronous transfer.
type request struct {
	l    *link
	h    *hixl.Handle
	user any
}

// TransferAsync begins a transfer and returns its name, by which
// [Engine.GetTransferStatus] tells how it ends. It has no time limit of its own: who
// has waited long enough cancels it by [Engine.CancelTransfer], or disconnects. All
// local memory must be registered, and stay as it is until the end.
//
// A region that is used for the first time on this link is asked for, which takes
// round trips and at most [DefaultTimeout]. The error is that of
// [Engine.TransferSync] before anything is sent, or [StatusResourceExhausted] when
// there are [MaxRequests], or asynchronous transfers on
// comm_resource_config.max_active_channels other links, or the remote engine's
// queue of notifications is full.
func (e *Engine) TransferAsync(remote string, op TransferOp, descs []TransferOpDesc, args TransferArgs) (TransferReq, error) {
	req, err := e.transferAsync(remote, op, descs, args)
	return req, fail("TransferAsync", remote, err)
}

func (e *Engine) transferAsync(remote string, op TransferOp, descs []TransferOpDesc, args TransferArgs) (TransferReq, error) {
	if err := checkTransfer(op, descs); err != nil {
		return 0, err
	}
	note, err := args.Notify.notification()
	if err != nil {
		return 0, err
	}
	l, p, err := e.use(context.Background(), remote)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(e.ctx, waits.call)
	defer cancel()
	direct, relayed, err := e.resolve(ctx, l, p, descs)
	if err != nil {
		return 0, e.latch(l, err)
	}
	if len(relayed) > 0 {
		return 0, invalid("piece %d is no part of a registered region, which only TransferSync takes", relayed[0].index)
	}
	t := &hixl.Transfer{Op: direction(op), Descs: direct, Notify: note}
	req, err := e.begin(l, p, t, args.UserData)
	return req, e.latch(l, err)
}

// begin starts a transfer and gives it a name.
func (e *Engine) begin(l *link, p *hixl.Peer, t *hixl.Transfer, user any) (TransferReq, error) {
	if err := e.reserve(l); err != nil {
		return 0, err
	}
	h, err := p.Start(t)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.unreserve(l)
		return 0, err
	}
	e.lastID++
	e.reqs[e.lastID] = &request{l, h, user}
	return e.lastID, nil
}

// reserve makes room for a request.
func (e *Engine) reserve(l *link) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.openLocked(); err != nil {
		return err
	}
	if most := e.opts.Resources.MaxActiveChannels; l.reqs == 0 && e.active >= most {
		return fault(StatusResourceExhausted, "%d links have asynchronous transfers, as many as comm_resource_config.max_active_channels allows", most)
	}
	if len(e.reqs) >= MaxRequests {
		return fault(StatusResourceExhausted, "the end of %d asynchronous transfers was not taken; ask GetTransferStatus", len(e.reqs))
	}
	if l.reqs++; l.reqs == 1 {
		e.active++
	}
	return nil
}

// unreserve gives the room back. e.mu is held.
func (e *Engine) unreserve(l *link) {
	if l.reqs--; l.reqs == 0 {
		e.active--
	}
}

// GetTransferStatus tells how far a transfer is. The answers [TransferCompleted] and
// [TransferFailed] are given once: then its name is forgotten, and the error of
// asking again is [StatusParamInvalid]. With TransferFailed the error says why.
func (e *Engine) GetTransferStatus(req TransferReq) (TransferStatus, error) {
	s, err := e.transferStatus(req)
	return s, fail("GetTransferStatus", "", err)
}

func (e *Engine) transferStatus(req TransferReq) (TransferStatus, error) {
	e.mu.Lock()
	r, err := e.reqs[req], e.openLocked()
	e.mu.Unlock()
	switch {
	case err != nil:
		return TransferFailed, err
	case r == nil:
		return TransferFailed, invalid("transfer %d is not known: its end was taken already, or there was none", req)
	}
	s, err := r.look()
	if s != TransferWaiting && !e.take(req, r) {
		return TransferFailed, invalid("transfer %d: its end was taken already", req)
	}
	return s, e.latch(r.l, err)
}

// look finds out how far a transfer is.
func (r *request) look() (TransferStatus, error) {
	switch done, err := r.h.Poll(); {
	case !done:
		return TransferWaiting, nil
	case err != nil:
		return TransferFailed, err
	}
	return TransferCompleted, nil
}

// take forgets a transfer that is over; false: somebody else has.
func (e *Engine) take(req TransferReq, r *request) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reqs[req] != r {
		return false
	}
	delete(e.reqs, req)
	e.unreserve(r.l)
	return true
}

// GetTransferStatuses tells how far many transfers are, the oldest first. Ends are
// given once, as by [Engine.GetTransferStatus].
func (e *Engine) GetTransferStatuses(args GetTransferStatusArgs) ([]TransferResult, error) {
	e.mu.Lock()
	reqs, err := maps.Clone(e.reqs), e.openLocked()
	e.mu.Unlock()
	if err != nil {
		return nil, fail("GetTransferStatuses", "", err)
	}
	var all []TransferResult
	for _, req := range slices.Sorted(maps.Keys(reqs)) {
		if uint64(len(all)) >= args.limit() {
			break
		}
		r := reqs[req]
		s, err := r.look()
		if s == TransferWaiting && args.SkipWaiting || s != TransferWaiting && !e.take(req, r) {
			continue
		}
		all = append(all, TransferResult{Req: req, UserData: r.user, Status: s, Err: fail("TransferAsync", r.l.at.String(), e.latch(r.l, err))})
	}
	return all, nil
}

// CancelTransfer gives a transfer up. When it returns nil no byte of it lands from
// now on, here or there; it may have been done before, which [Engine.GetTransferStatus]
// tells. When ctx ends before that, the error is [StatusTimeout] and unwraps to
// [hixl.ErrUnfenced]; it may be called again. Where the transfer makes no progress
// its link is ended to stop it, and has failed then.
func (e *Engine) CancelTransfer(ctx context.Context, req TransferReq) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	e.mu.Lock()
	r := e.reqs[req]
	e.mu.Unlock()
	if r == nil {
		return fail("CancelTransfer", "", invalid("transfer %d is not known: its end was taken already, or there was none", req))
	}
	return fail("CancelTransfer", r.l.at.String(), r.h.Cancel(ctx))
}
