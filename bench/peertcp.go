package bench

import (
	"context"
	"errors"
	"fmt"
)

// maxTCP is the largest number of sizes whose receivers are open at once.
const maxTCP = 64

// tcpOpen makes the receiver of one size.
func (p *peer) tcpOpen(_ context.Context, req *request, resp *response) error {
	if req.TCP == nil || req.TCP.Size < 1 || req.TCP.Size > MaxMessage || p.tcp[req.TCP.Size] != nil || len(p.tcp) >= maxTCP {
		return fmt.Errorf("tcp-open: allowed: one receiver a size, %d in all", maxTCP)
	}
	r, err := listenTCP(p.ep.nic.Address(), req.TCP.Size, p.ep.dst.Bytes())
	if err != nil {
		return err
	}
	p.tcp[req.TCP.Size] = r
	resp.Port = r.port()
	return nil
}

// receiverOf finds the receiver that a request is about.
func (p *peer) receiverOf(req *request) (*tcpReceiver, error) {
	if req.TCP == nil || p.tcp[req.TCP.Size] == nil {
		return nil, errors.New("no tcp receiver is open for that size")
	}
	return p.tcp[req.TCP.Size], nil
}

// tcpTake waits until all messages have arrived.
func (p *peer) tcpTake(ctx context.Context, req *request, _ *response) error {
	r, err := p.receiverOf(req)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	return r.take(ctx, req.Count)
}

func (p *peer) tcpEcho(_ context.Context, req *request, _ *response) error {
	r, err := p.receiverOf(req)
	if err == nil {
		r.echo.Store(req.TCP.Echo)
	}
	return err
}

// tcpDone verifies a round.
func (p *peer) tcpDone(_ context.Context, req *request, _ *response) error {
	r, err := p.receiverOf(req)
	if err != nil {
		return err
	}
	if len(req.Spans) != 1 || req.Prepare == nil {
		return errors.New("tcp-done without sensible parameters")
	}
	return r.lay.verify(p.ep.dst.Bytes(), req.Prepare.Key, req.Spans)
}
