package tools

import (
	"context"
	"fmt"
	"time"

	"github.com/gohixl/hixl"
)

// CMLink carries the messages of an exchange as SENDs over a connection of the
// connection manager. It is used by one goroutine at a time.
type CMLink struct {
	conn     *hixl.Conn
	cq       *hixl.CQ
	mr       *hixl.Region
	patience time.Duration
	arrived  []hixl.Completion // receives that completed while a send was waited for
}

// Sizes of a CMLink: messages of up to slotSize bytes, and so many receives.
const (
	slotSize  = 64
	slots     = 8
	sendWRID  = slots // beside the receives' numbers
	linkDepth = slots + 1
)

// CMLinkEnd is a CMLink in the making: what its connection needs before it is
// asked for or accepted.
type CMLinkEnd struct{ link CMLink }

// NewCMLinkEnd makes the memory and the queue of a link on a NIC.
func NewCMLinkEnd(n *hixl.NIC, pd *hixl.PD, patience time.Duration) (*CMLinkEnd, error) {
	e := &CMLinkEnd{CMLink{patience: patience}}
	var err error
	if e.link.cq, err = n.CreateCQ(2 * linkDepth); err != nil {
		return nil, err
	}
	e.link.mr, err = pd.Alloc((slots+1)*slotSize, hixl.LocalWrite)
	return e, err
}

// QPConfig is how its queue pair is made.
func (e *CMLinkEnd) QPConfig(pd *hixl.PD) hixl.QPConfig {
	return hixl.QPConfig{
		PD: pd, SendCQ: e.link.cq, RecvCQ: e.link.cq, MaxSendWR: 2, MaxRecvWR: slots, NoRemote: true, MaxReads: hixl.None,
	}
}

// Receives are those that must be posted before the peer can send.
func (e *CMLinkEnd) Receives() (wrs []hixl.RecvWR) {
	for i := range uint64(slots) {
		wrs = append(wrs, e.link.receive(i))
	}
	return wrs
}

// Link is the link over the connection that was made of it.
func (e *CMLinkEnd) Link(c *hixl.Conn) *CMLink {
	e.link.conn = c
	return &e.link
}

func (l *CMLink) receive(slot uint64) hixl.RecvWR {
	return hixl.RecvWR{ID: slot, SGE: []hixl.SGE{l.mr.SGE(slot*slotSize, slotSize)}}
}

// Peer names the other end.
func (l *CMLink) Peer() string { return l.conn.RemoteAddr().String() }

// Send sends one message and waits until the peer has it. The error is an
// *[ExchangeError].
func (l *CMLink) Send(ctx context.Context, step string, b []byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.patience, ErrSilent)
	defer cancel()
	at := l.mr.SGE(sendWRID*slotSize, uint32(len(b)))
	copy(l.mr.Bytes()[sendWRID*slotSize:], b)
	err := l.conn.PostSend(hixl.SendWR{ID: sendWRID, Op: hixl.OpSend, Flags: hixl.Signaled, SGE: []hixl.SGE{at}})
	if err != nil {
		return l.failed(step, "cannot send", err)
	}
	for {
		wc, err := l.next(ctx)
		if err != nil {
			return l.failed(step, "cannot send", err)
		}
		if wc.WRID == sendWRID {
			return nil
		}
		l.arrived = append(l.arrived, wc)
	}
}

// Receive fills b with one message and waits for it as long as the peer's silence
// is bearable. The error is an *[ExchangeError].
func (l *CMLink) Receive(ctx context.Context, step string, b []byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.patience, ErrSilent)
	defer cancel()
	return l.Await(ctx, step, b)
}

// Await is Receive without a bound of its own: only ctx ends it.
func (l *CMLink) Await(ctx context.Context, step string, b []byte) error {
	var wc hixl.Completion
	if len(l.arrived) > 0 {
		wc, l.arrived = l.arrived[0], l.arrived[1:]
	} else {
		var err error
		if wc, err = l.next(ctx); err != nil {
			return l.failed(step, "nothing came", err)
		}
	}
	if int(wc.ByteLen) != len(b) {
		return l.failed(step, fmt.Sprintf("a message of %d bytes, not %d", wc.ByteLen, len(b)), nil)
	}
	copy(b, l.mr.Bytes()[wc.WRID*slotSize:])
	if err := l.conn.PostRecv(l.receive(wc.WRID)); err != nil {
		return l.failed(step, "cannot receive more", err)
	}
	return nil
}

// next waits for a completion.
func (l *CMLink) next(ctx context.Context) (hixl.Completion, error) {
	return Next(ctx, l.cq, l.conn)
}

func (l *CMLink) failed(step, problem string, err error) error {
	return &ExchangeError{Peer: l.Peer(), Step: step, Problem: problem, Err: err}
}

// Disconnect ends the connection.
func (l *CMLink) Disconnect(ctx context.Context) { _ = l.conn.Disconnect(ctx) }
