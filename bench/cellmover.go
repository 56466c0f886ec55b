package bench

import (
	"context"
	"errors"
	"time"
)

// cellMover moves a cell's messages with its operation.
type cellMover struct {
	s    *session
	cell cell
	in   *initiator
	sent []uint64 // messages of each lane before this round
}

// open makes the queue pairs and connects them to the peer's.
func (c *cellMover) open(ctx context.Context) error {
	lay, err := c.cell.layout(len(c.s.ep.dst.Bytes()))
	if err != nil {
		return err
	}
	l, err := c.s.ep.openLanes(c.cell, lay)
	if err != nil {
		return err
	}
	resp, err := c.s.call(ctx, &request{Do: doOpen, Open: &openCell{Cell: c.cell, Addresses: l.addresses()}})
	if err == nil {
		err = l.connect(resp.Addresses)
	}
	if err != nil {
		return errors.Join(err, l.close())
	}
	op, wr := c.s.ep.operation(l, c.s.peer)
	c.in = newInitiator(l, op, wr)
	return nil
}

// prepare readies both sides' memory and the operation.
func (c *cellMover) prepare(ctx context.Context, key uint64) error {
	here, there := &preparation{Key: key, Fill: true}, &preparation{Key: key, Clear: true}
	switch op := c.cell.Op; {
	case op.pulls():
		here, there = there, here
	case op.atomic():
		here, there = &preparation{Key: key, Clear: true}, &preparation{Key: key, Clear: true, Counters: c.cell.QPs}
	}
	c.sent = c.in.sent()
	c.in.op.begin(key, c.sent)
	if err := c.s.ep.prepare(here); err != nil {
		return err
	}
	_, err := c.s.call(ctx, &request{Do: doPrepare, Prepare: there})
	return err
}

func (c *cellMover) stream(ctx context.Context, d time.Duration, least uint64) (uint64, time.Duration, error) {
	watched, stop := watch(ctx, c.in.moved)
	defer stop()
	n, elapsed, err := c.in.stream(watched, d, least)
	return n, elapsed, explain(watched, err)
}

func (c *cellMover) pingPong(ctx context.Context, d time.Duration, least uint64, h histogram) error {
	watched, stop := watch(ctx, c.in.moved)
	defer stop()
	return explain(watched, c.in.pingPong(watched, d, least, h))
}

func (c *cellMover) usage(ctx context.Context) (usage, error) { return c.s.usage(ctx) }

// verify checks both sides' memory and what the operation brought back.
func (c *cellMover) verify(ctx context.Context, key uint64) error {
	spans := c.in.spans(c.sent)
	if err := c.verifyHere(key, spans); err != nil {
		return onSide(requesterSide, err)
	}
	_, err := c.s.call(ctx, &request{Do: doFinish, Cell: c.cell.ID, Spans: spans, Prepare: &preparation{Key: key}})
	return onSide(responderSide, err)
}

func (c *cellMover) verifyHere(key uint64, spans []span) error {
	if c.cell.Op.pulls() {
		if err := c.s.ep.dst.pull(); err != nil {
			return err
		}
		return c.in.lay.verify(c.s.ep.dst.Bytes(), key, spans)
	}
	return c.in.op.end()
}

// close closes the queue pairs on both sides.
func (c *cellMover) close(ctx context.Context) error {
	_, err := c.s.call(ctx, &request{Do: doClose, Cell: c.cell.ID})
	return errors.Join(err, c.in.close())
}
