package hixl

import (
	"fmt"
	"sync/atomic"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/peerwire"
	"github.com/gohixl/hixl/roce/wr"
)

// generation is one connection between two contexts: all lanes that were made for
// it. Its lanes live and die together, so that no order is ever changed by one of
// them coming back earlier than another. Guarded by the peer's lock.
type generation struct {
	n      uint32
	lanes  []*lane // by number; nil: not made
	broken bool
	cause  error // why it is broken
	fenced bool  // the other end takes nothing of it any more
	fence  chan struct{}
	// credits is how many notifications the other end had room for at its start.
	credits uint32
}

// lane is one queue pair of a generation, and the sink of its sends.
type lane struct {
	p     *Peer
	gen   *generation
	index int
	conn  *Conn

	// What the queue pair tells, under its own lock. Its work requests are
	// numbered from 1, and end in that order.
	changed atomic.Bool                // the connection has news
	good    atomic.Uint64              // newest that succeeded
	last    atomic.Uint64              // newest that ended, once one has failed
	fault   atomic.Pointer[Completion] // of the first that failed
	signs   atomic.Uint64              // messages received

	// Guarded by the peer's lock.
	seq    uint64          // newest that was posted
	fifo   wr.Ring[posted] // those that have not ended
	bytes  uint64          // of them
	silent int             // unsignaled ones since the last signaled one
	bell   bool            // the doorbell is to be rung
	up     bool
	gone   bool // the other end of it takes nothing any more
	closed bool
}

// posted is a work request that has not ended.
type posted struct {
	h    *Handle // nil: nobody waits for it
	n    uint64  // bytes
	kind pieceKind
	slot uint32 // of what it holds, by kind
	// silent: nobody waits for it, but Flush tells of its failure.
	silent bool
}

// Complete implements cq.Sink. The queue pair's lock is held.
func (l *lane) Complete(c *Completion) bool {
	if c.Status == cq.StatusSuccess {
		l.good.Store(c.WRID)
		l.p.hear()
		return true
	}
	l.last.Store(c.WRID) // before fault, with which it is read
	if l.fault.Load() == nil {
		first := *c
		l.fault.Store(&first)
	}
	l.p.hear()
	l.p.c.attend(l.p)
	return true
}

// notify is told by the connection, under its lock.
func (l *lane) notify() {
	l.changed.Store(true)
	l.p.c.attend(l.p)
}

// room reports whether a work request can be posted.
func (l *lane) room() bool { return l.up && int(l.fifo.Len()) < l.p.c.cfg.SendQueue }

// signal returns the flag by which the end of a piece is told: if somebody waits for
// it, and of others often enough that the queue does not fill up with what has
// ended.
func (l *lane) signal(x *piece) Flags {
	size := l.p.c.cfg.SendQueue
	if x.flags&Unsignaled != 0 && x.kind != pieceChunk && l.silent < min(32, size/4) && int(l.fifo.Len())+1 < size {
		return 0
	}
	return Signaled
}

// idle reports whether everything posted has ended.
func (l *lane) idle() bool { return l.fifo.Len() == 0 }

// config describes the lane's queue pair.
func (l *lane) config() QPConfig {
	c := l.p.c
	return QPConfig{
		PD: c.pd, SendSink: l, RecvSink: received{l}, SRQ: c.inbox.srq, MaxSendWR: c.cfg.SendQueue, MaxSendSGE: 1, MaxRecvWR: 1,
		MaxReads: c.cfg.Connect.MaxReads,
	}
}

// dial begins to make the lane.
func (l *lane) dial() error {
	p := l.p
	hello := peerwire.Hello{
		Lane: uint8(l.index), Lanes: uint8(len(l.gen.lanes)), Port: p.c.port(), ID: p.c.id.wire(), Session: p.session,
		Generation: l.gen.n, Credits: p.credits(),
	}
	var err error
	l.conn, err = p.c.nic.StartDial(p.addr, DialOptions{
		QPConfig: l.config(), Connect: p.c.cfg.Connect, PrivateData: hello.Append(nil), notify: l.notify,
	})
	if err == nil {
		p.c.driver.Add(l.conn.q)
	}
	return err
}

// accept makes the lane that a peer asks for.
func (l *lane) accept(r *Request, w *peerwire.Welcome) error {
	var err error
	l.conn, err = r.Accept(AcceptOptions{
		QPConfig: l.config(), Connect: l.p.c.cfg.Connect, PrivateData: w.Append(nil), notify: l.notify,
	})
	if err == nil {
		l.p.c.driver.Add(l.conn.q)
	}
	return err
}

// hangUp ends the lane's connection: the queue pair takes and gives nothing from
// now on, what is outstanding is flushed, and the peer is told until it agrees.
func (l *lane) hangUp() {
	if l.conn != nil {
		l.conn.hangUp(false)
	}
}

// bury closes the queue pair of a lane of which nothing is outstanding.
func (l *lane) bury() {
	if l.conn != nil && !l.closed && l.idle() {
		l.closed = true
		_ = l.conn.Close()
	}
}

// reap ends what the queue pair says has ended.
func (l *lane) reap() {
	fault := l.fault.Load()
	if fault == nil {
		for good := l.good.Load(); !l.idle() && l.oldest() <= good; {
			l.end(cq.StatusSuccess, 0)
		}
		return
	}
	for last := l.last.Load(); !l.idle() && l.oldest() <= last; {
		switch n := l.oldest(); {
		case n < fault.WRID:
			l.end(cq.StatusSuccess, 0)
		case n == fault.WRID:
			l.end(fault.Status, uint64(fault.ByteLen))
		default:
			l.end(cq.StatusFlushed, 0)
		}
	}
}

// trim gives back what the queues of an idle lane have grown to.
func (l *lane) trim() {
	l.fifo.Trim()
	l.conn.q.Trim()
}

// oldest is the number of the oldest that has not ended.
func (l *lane) oldest() uint64 { return l.seq - l.fifo.Len() + 1 }

// end ends the oldest.
func (l *lane) end(s cq.Status, arrived uint64) {
	e := *l.fifo.At(l.fifo.Head)
	l.fifo.Pop()
	l.bytes -= e.n
	if s == cq.StatusSuccess {
		arrived = e.n
	}
	l.p.ended(l, &e, s, min(arrived, e.n))
}

// failure is why work of the lane failed with a status.
func (l *lane) failure(s cq.Status) error {
	fault := l.fault.Load()
	switch {
	case s == cq.StatusFlushed || fault == nil:
		if l.gen.cause != nil {
			return l.gen.cause
		}
		return l.orMemory(ErrPeerDown)
	case s == cq.StatusRemoteAccess: // bounds and rights have been looked at
		return fmt.Errorf("%w: %w", ErrStale, fault.Err())
	case s == cq.StatusLocalProtection || s == cq.StatusLocalQPOperation || s == cq.StatusLocalAccess:
		return l.orMemory(fault.Err())
	}
	return fault.Err()
}

// orMemory adds to err what the device of local memory has said, if that has failed.
func (l *lane) orMemory(err error) error {
	if l.conn == nil {
		return err
	}
	if failed := l.conn.MemoryError(); failed != nil {
		return fmt.Errorf("%w: %w", err, failed)
	}
	return err
}
