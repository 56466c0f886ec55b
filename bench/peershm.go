package bench

import (
	"context"
	"errors"
)

// shmOpen makes the receiver of one size. Only a peer that the requester's
// process started maps what it is told to.
func (p *peer) shmOpen(_ context.Context, req *request, _ *response) error {
	switch {
	case !p.trusted:
		return errors.New("shm baseline: refused by a peer that anybody can reach")
	case req.Shm == nil || req.Shm.Size < 1 || req.Shm.Size > MaxMessage || p.shm[req.Shm.Size] != nil || len(p.shm) >= maxTCP:
		return errors.New("shm-open without sensible parameters")
	}
	r, err := openShmReceiver(req.Shm, p.ep.dst.Bytes())
	if err == nil {
		p.shm[req.Shm.Size] = r
	}
	return err
}

// ringOf finds the receiver that a request is about.
func (p *peer) ringOf(req *request) (*shmReceiver, error) {
	if req.Shm == nil || p.shm[req.Shm.Size] == nil {
		return nil, errors.New("no ring is open for that size")
	}
	return p.shm[req.Shm.Size], nil
}

func (p *peer) shmStart(_ context.Context, req *request, _ *response) error {
	r, err := p.ringOf(req)
	if err != nil {
		return err
	}
	return r.start()
}

func (p *peer) shmTake(ctx context.Context, req *request, _ *response) error {
	r, err := p.ringOf(req)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	return r.took(ctx, req.Count)
}

// shmDone verifies a round.
func (p *peer) shmDone(_ context.Context, req *request, _ *response) error {
	r, err := p.ringOf(req)
	if err != nil {
		return err
	}
	if len(req.Spans) != 1 || req.Prepare == nil {
		return errors.New("shm-done without sensible parameters")
	}
	return r.lay.verify(p.ep.dst.Bytes(), req.Prepare.Key, req.Spans)
}

func (p *peer) shmClose(_ context.Context, req *request, _ *response) error {
	r, err := p.ringOf(req)
	if err == nil {
		delete(p.shm, req.Shm.Size)
		r.close()
	}
	return err
}
