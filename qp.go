package hixl

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
)

// QP is a queue pair: one end of a connection, or an end for datagrams. All methods may be called
// from any goroutine.
type QP struct {
	nic    *NIC
	q      *nic.Queue
	kind   Type
	access Access
	qkey   uint32
	reads  int // the peer may have in flight
	srq    bool
	conn   atomic.Pointer[Conn] // that has joined it, or is about to

	mu  sync.Mutex // one Connect or Reset at a time
	psn roce.PSN   // guarded by mu; the first this side sends
}

// CreateQP makes a queue pair in INIT: receives may be posted, and it is ready to
// be connected.
func (n *NIC) CreateQP(cfg QPConfig) (*QP, error) {
	c, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	q := &QP{
		nic: n, kind: cfg.Type, access: cfg.access(), qkey: cfg.QKey, reads: orDefault(cfg.MaxReads, DefaultReads), srq: cfg.SRQ != nil,
	}
	c.Watch = q.watch
	if q.q, err = n.nic.CreateQP(c); err != nil {
		return nil, err
	}
	if err := q.init(); err != nil {
		q.q.Close()
		return nil, err
	}
	return q, nil
}

// init moves the queue pair from RESET to INIT with a new first PSN. Unguessable
// PSNs keep those who cannot see the packets from forging them.
func (q *QP) init() error {
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		return fmt.Errorf("hixl: reading randomness for a PSN: %w", err)
	}
	q.psn = roce.PSN(binary.LittleEndian.Uint32(b[:])) & roce.PSNMask
	mask := qp.MaskState | qp.MaskPort | qp.MaskPKeyIndex | qp.MaskAccess
	if q.kind == UD {
		mask ^= qp.MaskAccess | qp.MaskQKey
	}
	return q.q.Modify(&qp.Attr{State: qp.Init, Port: 1, Access: q.access, QKey: q.qkey}, mask)
}

// QPN returns the queue pair's number.
func (q *QP) QPN() QPN { return q.q.QPN() }

// State returns the state now.
func (q *QP) State() State { return q.q.State() }

// Query returns the attributes that were given, and the state.
func (q *QP) Query() Attr { return q.q.Query() }

// Stats returns what was counted since the queue pair was connected.
func (q *QP) Stats() QPStats { return q.q.Stats() }

// MemoryError is why memory failed under the queue pair since it was last reset, or
// nil: the first error that its device gave, such as a *device.DriverError with the
// driver's code. Completions tell of it by a status only.
func (q *QP) MemoryError() error { return q.q.MemoryError() }

// PostSend posts send work requests in order and sends what may leave, with one
// doorbell for all. The error is [ErrClosed] or a *[PostError], which names the
// request that was refused; those before it are posted.
func (q *QP) PostSend(wrs ...SendWR) error { return q.q.PostSend(wrs) }

// PostRecv posts receives in order. The error is as for PostSend.
func (q *QP) PostRecv(wrs ...RecvWR) error { return q.q.PostRecv(wrs) }

// Modify changes attributes and state by the verbs rules, for those who need more
// than Connect, Reset and Close. See package qp for the table.
func (q *QP) Modify(attr *Attr, mask AttrMask) error { return q.q.Modify(attr, mask) }

// watch passes on what a connection must know. The queue pair's lock is held.
func (q *QP) watch(e Event) {
	if c := q.conn.Load(); c != nil {
		c.watch(e)
	}
}

// leave ends the connection that has joined the queue pair, if any.
func (q *QP) leave() {
	if c := q.conn.Load(); c != nil {
		c.leave()
	}
}

// Reset forgets the connection and everything outstanding, without completions,
// and makes the queue pair ready to be connected again, with a new Address. The
// peer of a [Conn] is told.
func (q *QP) Reset() error {
	q.leave()
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.q.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState); err != nil {
		return err
	}
	return q.init()
}

// Close destroys the queue pair; what is outstanding on it gets no completions.
// To have them, move it to [StateError] first. The peer of a [Conn] is told that it
// has ended, in the background. Closing twice is fine.
func (q *QP) Close() error {
	q.leave()
	q.q.Close()
	return nil
}
