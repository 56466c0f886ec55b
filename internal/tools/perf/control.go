package perf

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gohixl/hixl/internal/tools"
)

// link carries whole messages between the two ends: TCP, or a connection of the
// connection manager.
type link interface {
	Send(ctx context.Context, step string, b []byte) error
	// Receive waits for the peer as long as its silence is bearable, Await as
	// long as ctx lives.
	Receive(ctx context.Context, step string, b []byte) error
	Await(ctx context.Context, step string, b []byte) error
	Peer() string
}

// control runs the exchange over a link. In every step the client speaks first.
type control struct {
	link   link
	client bool
	// text chooses the form of the address lines.
	text bool
}

// swap gives a message and fills theirs, of the same size, with the peer's.
func (c *control) swap(ctx context.Context, step string, mine, theirs []byte) error {
	return c.exchange(ctx, step, mine, theirs, c.link.Receive)
}

func (c *control) exchange(
	ctx context.Context, step string, mine, theirs []byte, receive func(context.Context, string, []byte) error,
) error {
	if c.client {
		if err := c.link.Send(ctx, step, mine); err != nil {
			return err
		}
		return receive(ctx, step, theirs)
	}
	if err := receive(ctx, step, theirs); err != nil {
		return err
	}
	return c.link.Send(ctx, step, mine)
}

// swapDest is swap for an address.
func (c *control) swapDest(ctx context.Context, step string, mine *dest) (dest, error) {
	b := c.buffer()
	if err := c.exchange(ctx, step, c.form(mine), b, c.link.Receive); err != nil {
		return dest{}, err
	}
	return c.parse(step, b)
}

// barrier swaps addresses to learn that the peer has come as far, however long
// ctx lets that take.
func (c *control) barrier(ctx context.Context, step string, mine *dest) error {
	b := c.buffer()
	if err := c.exchange(ctx, step, c.form(mine), b, c.link.Await); err != nil {
		return err
	}
	_, err := c.parse(step, b)
	return err
}

// await and answer are the halves of a server's barrier.
func (c *control) await(ctx context.Context, step string) error {
	b := c.buffer()
	if err := c.link.Await(ctx, step, b); err != nil {
		return err
	}
	_, err := c.parse(step, b)
	return err
}

func (c *control) answer(ctx context.Context, step string, mine *dest) error {
	return c.link.Send(ctx, step, c.form(mine))
}

func (c *control) buffer() []byte {
	if c.text {
		return make([]byte, lineLen)
	}
	return make([]byte, structLen)
}

func (c *control) form(d *dest) []byte {
	if c.text {
		return d.line()
	}
	return d.bytes()
}

func (c *control) parse(step string, b []byte) (d dest, err error) {
	if c.text {
		d, err = parseLine(b)
	} else {
		d, err = parseStruct(b)
	}
	if err != nil {
		return d, c.misunderstood(step, err)
	}
	return d, nil
}

func (c *control) misunderstood(step string, err error) error {
	return &tools.ExchangeError{Peer: c.link.Peer(), Step: step, Problem: "not understood", Err: err}
}

var done = []byte("done\x00")

// part says goodbye over TCP. The original closes after its last message without
// waiting for ours, so that whether ours gets there is no matter.
func (c *control) part(ctx context.Context) error {
	const step = "that we are done"
	b := make([]byte, len(done))
	if c.link.Send(ctx, step, done) != nil || c.link.Receive(ctx, step, b) != nil {
		return ctx.Err()
	}
	if !bytes.Equal(b, done) {
		return c.misunderstood(step, fmt.Errorf("got %q, not %q", b, done))
	}
	return nil
}
