package bench

import (
	"context"
	"time"
)

// tcpMover moves messages over a TCP connection to the peer's process.
type tcpMover struct {
	s      *session
	size   int
	detail string // how the connection is set up
	send   *tcpSender
	first  uint64 // messages before this round
}

func (t *tcpMover) open(ctx context.Context) error {
	lay, err := newLayout(len(t.s.ep.dst.Bytes()), t.size, 1)
	if err != nil {
		return err
	}
	resp, err := t.ask(ctx, &request{Do: doTCPOpen})
	if err != nil {
		return err
	}
	conn, detail, err := dialTCP(ctx, t.s.ep.nic.Address(), t.s.peer.Addr, resp.Port)
	if err != nil {
		return err
	}
	t.detail = detail
	t.send = &tcpSender{conn: conn, src: t.s.ep.src.Bytes(), lay: lay}
	t.send.walk = t.send.lay.walk(0)
	return nil
}

// ask asks the peer about this size's receiver.
func (t *tcpMover) ask(ctx context.Context, req *request) (*response, error) {
	if req.TCP == nil {
		req.TCP = &tcpSpec{}
	}
	req.TCP.Size = t.size
	return t.s.call(ctx, req)
}

func (t *tcpMover) prepare(ctx context.Context, key uint64) error {
	t.first = t.send.walk.n
	if err := t.s.ep.prepare(&preparation{Key: key, Fill: true}); err != nil {
		return err
	}
	_, err := t.s.call(ctx, &request{Do: doPrepare, Prepare: &preparation{Key: key, Clear: true}})
	return err
}

// stream ends when the peer says that everything has arrived, as a WRITE's
// completion does.
func (t *tcpMover) stream(ctx context.Context, d time.Duration, least uint64) (uint64, time.Duration, error) {
	defer t.hangUpAfter(ctx)()
	start := time.Now()
	n, err := t.send.send(d, least)
	if err == nil {
		_, err = t.ask(ctx, &request{Do: doTCPTake, Count: t.send.walk.n})
	}
	return n, time.Since(start), err
}

func (t *tcpMover) pingPong(ctx context.Context, d time.Duration, least uint64, h histogram) error {
	defer t.hangUpAfter(ctx)()
	if _, err := t.ask(ctx, &request{Do: doTCPEcho, TCP: &tcpSpec{Echo: true}}); err != nil {
		return err
	}
	if _, err := t.send.ping(d, least, h); err != nil {
		return err
	}
	_, err := t.ask(ctx, &request{Do: doTCPEcho})
	return err
}

// hangUpAfter unblocks the connection when ctx ends.
func (t *tcpMover) hangUpAfter(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = t.send.conn.Close() })
}

func (t *tcpMover) usage(ctx context.Context) (usage, error) { return t.s.usage(ctx) }

func (t *tcpMover) verify(ctx context.Context, key uint64) error {
	_, err := t.ask(ctx, &request{
		Do: doTCPDone, Prepare: &preparation{Key: key}, Spans: []span{{From: t.first, To: t.send.walk.n}},
	})
	return onSide(responderSide, err)
}

func (t *tcpMover) walks() int { return t.send.lay.used() }

func (t *tcpMover) close(context.Context) error {
	return t.send.conn.Close()
}
