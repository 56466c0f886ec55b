package rping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
)

// Result tells how a game went.
type Result struct {
	Rounds        int
	Retransmitted uint64 // packets of ours sent again
}

// farewell bounds how long a peer is waited for that has been told of the end.
const farewell = 5 * time.Second

// Run plays one game and prints it to cfg.Out. The error is a *[tools.OptionError],
// *[tools.DataError] or *[hixl.ConnError], what opening the NIC said, or what
// became of a message.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	e, err := newEnd(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	res, err := e.run(ctx)
	if err = errors.Join(err, e.nic.Close()); err != nil {
		return nil, err
	}
	return res, cfg.OutErr()
}

func (e *end) run(ctx context.Context) (*Result, error) {
	if err := e.setUp(); err != nil {
		return nil, err
	}
	meet, play := e.accept, e.serve
	if e.cfg.Client() {
		meet, play = e.dial, e.ping
	}
	if err := meet(ctx); err != nil {
		return nil, err
	}
	watched, stop := tools.Watch(ctx, e.cfg.Patience, e.progress)
	defer stop()
	res := &Result{}
	err := play(watched, res)
	res.Retransmitted = e.conn.Stats().Retransmitted
	if err != nil {
		return nil, fmt.Errorf("round %d: %w", res.Rounds+1, err)
	}
	return res, nil
}

func (e *end) dial(ctx context.Context) (err error) {
	e.conn, err = e.cfg.DialCM(ctx, e.nic, hixl.DialOptions{
		QPConfig: e.qpConfig(), Receives: e.receives(), Connect: hixl.ConnectOptions{MaxReads: 1},
	})
	return err
}

func (e *end) accept(ctx context.Context) error {
	l, err := e.cfg.ListenCM(ctx, e.nic, 1)
	if err != nil {
		return err
	}
	defer l.Close()
	r, err := l.AcceptRequest(ctx)
	if err != nil {
		return fmt.Errorf("no client came: %w", tools.Cause(ctx, err))
	}
	e.conn, err = r.Accept(hixl.AcceptOptions{QPConfig: e.qpConfig(), Receives: e.receives(), Connect: hixl.ConnectOptions{MaxReads: 1}})
	if err != nil {
		return err
	}
	return e.conn.WaitEstablished(ctx)
}

// ping is the client's game.
func (e *end) ping(ctx context.Context, res *Result) error {
	size := uint64(e.cfg.Size)
	src, dst := e.mr.Bytes()[source:source+size], e.mr.Bytes()[e.sink:e.sink+size]
	for ; e.cfg.Count == 0 || res.Rounds < e.cfg.Count; res.Rounds++ {
		ball(src, res.Rounds)
		clear(dst)
		for _, at := range []uint64{source, e.sink} {
			if err := e.tell(advert{e.mr.Addr() + at, e.mr.RKey(), uint32(size)}); err != nil {
				return err
			}
			if _, err := e.hear(ctx); err != nil {
				return err
			}
		}
		if e.cfg.Validate {
			if err := tools.CompareBytes("what came back", dst, src); err != nil {
				return err
			}
		}
		if e.cfg.Verbose {
			e.cfg.Printf("ping data: %s\n", text(dst))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	_ = e.conn.Disconnect(ctx) // the peer may have gone at once
	return nil
}

// serve is the server's game: it ends when the client disconnects between rounds.
func (e *end) serve(ctx context.Context, res *Result) error {
	for ; ; res.Rounds++ {
		far, err := e.hear(ctx)
		if errors.Is(err, tools.ErrEnded) && tools.PeerDisconnected(e.conn) {
			return e.enough(res.Rounds)
		}
		if err != nil {
			return err
		}
		if err := e.pong(ctx, far, res.Rounds); err != nil {
			return err
		}
	}
}

// enough judges the number of rounds that the client played.
func (e *end) enough(rounds int) error {
	e.cfg.Printf("server DISCONNECT EVENT after %d rounds\n", rounds)
	if e.cfg.Count > 0 && rounds != e.cfg.Count {
		return &tools.DataError{Where: "the game", Problem: fmt.Sprintf("the client ended it after %d rounds, not %d", rounds, e.cfg.Count)}
	}
	return nil
}

// pong is the server's part of a round.
func (e *end) pong(ctx context.Context, far advert, round int) error {
	n := far.size
	if n == 0 || n > MaxSize {
		return &tools.DataError{Where: "the source", Problem: fmt.Sprintf("%d bytes, and there is room for 1 to %d", n, MaxSize)}
	}
	if err := e.move(ctx, hixl.OpRead, far, n); err != nil {
		return err
	}
	got := e.mr.Bytes()[source : source+n]
	if e.cfg.Verbose {
		e.cfg.Printf("server ping data: %s\n", text(got))
	}
	if e.cfg.Validate {
		want := bytes.Clone(got)
		ball(want, round)
		if err := tools.CompareBytes("what was read", got, want); err != nil {
			return err
		}
	}
	if err := e.tell(advert{}); err != nil {
		return err
	}
	sink, err := e.hear(ctx)
	if err != nil {
		return err
	}
	if sink.size < n {
		return &tools.DataError{Where: "the sink", Problem: fmt.Sprintf("%d bytes, for %d", sink.size, n)}
	}
	if err := e.move(ctx, hixl.OpWrite, sink, n); err != nil {
		return err
	}
	return e.tell(advert{})
}
