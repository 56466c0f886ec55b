package mr

import "context"

// Deregister revokes both keys at once and then waits until nothing of the
// region is lent. With nil returned no byte of the region will be touched any
// more and its memory may be freed. When the context ends first the error is a
// *DeregisterError: the keys stay revoked, the memory may still be touched, and
// Deregister may be called again to wait again. On a region that is gone it
// returns nil.
func (r *Region) Deregister(ctx context.Context) error {
	idle := r.revoke()
	select {
	case <-idle: // also with a context that has ended
		return nil
	default:
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return &DeregisterError{Lent: r.Lent(), Err: ctx.Err()}
	}
}

// revoke makes the keys fail, once, and returns what is closed when nothing is
// lent any more.
func (r *Region) revoke() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle != nil {
		return r.idle
	}
	r.idle = make(chan struct{}) // before the flag: whoever sees the flag may close it
	r.pd.t.unlink(r)
	if r.state.Or(revoked)&lentMask == 0 {
		r.finish()
	}
	return r.idle
}

// finish runs exactly once: when the region is revoked with nothing lent, or
// when the last lent span comes back after that. Nothing can be acquired in
// between.
func (r *Region) finish() {
	release(r.mem)
	r.pd.t.remove(r)
	r.pd.leave(&r.pd.regions)
	close(r.idle)
}
