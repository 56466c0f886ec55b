package cmatose

import (
	"context"
	"errors"
	"fmt"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
)

// node is one connection with its messages.
type node struct {
	index int
	conn  *hixl.Conn
	cq    *hixl.CQ
	mr    *hixl.Region // what is sent, then what is received

	sent, received int
}

// Work request numbers.
const (
	sendID = 1
	recvID = 2
)

func (t *test) newNode(index int) (_ *node, err error) {
	n := &node{index: index}
	if n.cq, err = t.nic.CreateCQ(2*t.cfg.Messages + 1); err != nil {
		return nil, err
	}
	if n.mr, err = t.pd.Alloc(max(2*t.cfg.Size, 1), hixl.LocalWrite); err != nil {
		return nil, err
	}
	for i, b := 0, n.mr.Bytes()[:t.cfg.Size]; i < len(b); i++ {
		b[i] = filling(i)
	}
	return n, nil
}

// filling is the byte i of a message of this package; the original sends what it
// finds in its memory.
func filling(i int) byte { return byte(i*7 + i>>8) }

func (t *test) qpConfig(n *node) hixl.QPConfig {
	depth := max(t.cfg.Messages, 1)
	return hixl.QPConfig{
		PD: t.pd, SendCQ: n.cq, RecvCQ: n.cq, MaxSendWR: depth, MaxRecvWR: depth, SignalAll: true, NoRemote: true, MaxReads: 1,
	}
}

func (t *test) receives(n *node) []hixl.RecvWR {
	wrs := make([]hixl.RecvWR, t.cfg.Messages)
	for i := range wrs {
		wrs[i] = hixl.RecvWR{ID: recvID, SGE: []hixl.SGE{n.mr.SGE(uint64(t.cfg.Size), uint32(t.cfg.Size))}}
	}
	return wrs
}

func (t *test) send(n *node) error {
	wrs := make([]hixl.SendWR, t.cfg.Messages)
	for i := range wrs {
		wrs[i] = hixl.SendWR{ID: sendID, Op: hixl.OpSend, SGE: []hixl.SGE{n.mr.SGE(0, uint32(t.cfg.Size))}}
	}
	return n.conn.PostSend(wrs...)
}

// until takes completions of a connection until as many of each kind are there.
func (t *test) until(ctx context.Context, n *node, sent, received int) error {
	for n.sent < sent || n.received < received {
		wc, err := tools.Next(ctx, n.cq, n.conn)
		if err != nil {
			return fmt.Errorf("connection %d: %d of %d messages sent, %d received: %w", n.index+1, n.sent, t.cfg.Messages, n.received, err)
		}
		if wc.WRID == sendID {
			n.sent++
			continue
		}
		n.received++
		if err := t.check(n, &wc); err != nil {
			return err
		}
	}
	return nil
}

// check looks at a message's length, and at its bytes if the peer is of this
// package.
func (t *test) check(n *node, wc *hixl.Completion) error {
	where := func() string { return fmt.Sprintf("message %d of connection %d", n.received, n.index+1) }
	if int(wc.ByteLen) != t.cfg.Size {
		return &tools.DataError{Where: where(), Problem: fmt.Sprintf("%d bytes long, not %d: give both ends the same -S", wc.ByteLen, t.cfg.Size)}
	}
	if !n.conn.IsHixl() {
		return nil
	}
	got := n.mr.Bytes()[t.cfg.Size:]
	for i, b := range got {
		if b != filling(i) {
			return &tools.DataError{Where: where(), Problem: fmt.Sprintf("byte %d is %#02x, not %#02x", i, b, filling(i))}
		}
	}
	return nil
}

// over waits until the peer has ended a connection, and says if it was not in
// order.
func (t *test) over(ctx context.Context, n *node) error {
	select {
	case <-n.conn.Done():
	case <-ctx.Done():
		return fmt.Errorf("connection %d: the server does not disconnect: %w", n.index+1, context.Cause(ctx))
	}
	if !tools.PeerDisconnected(n.conn) {
		return errors.Join(fmt.Errorf("connection %d", n.index+1), n.conn.Err())
	}
	return nil
}
