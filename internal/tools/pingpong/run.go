package pingpong

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
)

// Result tells how a run went.
type Result struct {
	Size, Iters int
	Elapsed     time.Duration // of the traffic
	// Retransmitted is the number of our packets that were sent again.
	Retransmitted uint64
}

func (r *Result) String() string {
	bytes, us := int64(r.Size)*int64(r.Iters)*2, float64(r.Elapsed)/float64(time.Microsecond)
	return fmt.Sprintf("%d bytes in %.2f seconds = %.2f Mbit/sec\n%d iters in %.2f seconds = %.2f usec/iter\n",
		bytes, us/1e6, float64(bytes)*8/us, r.Iters, us/1e6, us/float64(r.Iters))
}

// lingering is how long the NIC stays after the last message, for a peer that
// has to ask for its ACK again: four ACK timeouts of the originals, 67 ms each.
const lingering = 4 * 67 * time.Millisecond

// Run plays one game and prints it to cfg.Out. The error is a *[tools.OptionError],
// *[tools.ExchangeError] or *[tools.DataError], what opening the NIC said, or what
// became of a message.
func Run(ctx context.Context, cfg Config) (_ *Result, err error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	meet := tools.Accept
	if cfg.Client() {
		meet = tools.Dial
	}
	conn, err := meet(ctx, &cfg.Common)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	p, err := newPlayer(&cfg, conn.Local())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.nic.Close()) }()
	mine := p.dest()
	cfg.Printf("  local address:  %v\n", &mine)
	theirs, err := exchange(ctx, conn, cfg.Client(), mine, p.connect)
	if err != nil {
		return nil, err
	}
	if err := conn.Close(); err != nil {
		return nil, err
	}
	cfg.Printf("  remote address: %v\n", &theirs)
	res, err := p.play(ctx)
	if err != nil {
		return nil, err
	}
	cfg.Printf("%v", res)
	if res.Retransmitted > 0 {
		cfg.Printf("%d packets retransmitted\n", res.Retransmitted)
	}
	return res, cfg.OutErr()
}

// rxPackets is what the watches look at.
func (p *player) progress() uint64 { return tools.Progress(p.nic) }

// play runs the traffic and waits until the peer has all it needs.
func (p *player) play(ctx context.Context) (*Result, error) {
	watched, stop := tools.Watch(ctx, p.cfg.Patience, p.progress)
	defer stop()
	start := time.Now()
	if err := p.loop(watched); err != nil {
		return nil, err
	}
	res := &Result{Size: p.cfg.Size, Iters: p.cfg.Iters, Elapsed: time.Since(start)}
	if p.cfg.Service == hixl.RC {
		tools.Linger(ctx, lingering, p.nic)
		res.Retransmitted = p.qp.Stats().Retransmitted
	}
	return res, nil
}
