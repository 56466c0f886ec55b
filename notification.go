package hixl

import (
	"context"
	"sync"

	"github.com/gohixl/hixl/internal/peerwire"
	"github.com/gohixl/hixl/roce/wr"
)

// MaxNotification is the longest name, and the longest data, of a notification.
const MaxNotification = peerwire.MaxNotify

// Notification is what one side tells the other: a name and data, or 32 bits.
type Notification struct {
	// Name and Data have at most [MaxNotification] bytes each.
	Name string
	Data []byte
	// Imm is the immediate of a write with immediate, if IsImm.
	Imm   uint32
	IsImm bool
	// Lost is how many before this one had no room. A peer that runs this package
	// does not send what has none, so it is 0 there.
	Lost uint64
}

// incoming holds what a peer has told, and what it may be told. Its lock is a leaf.
type incoming struct {
	mu      sync.Mutex
	queue   wr.Ring[Notification] // guarded by mu, as all below
	lost    uint64
	taken   uint64        // since the peer was last told how much room there is
	told    uint64        // of taken
	arrived chan struct{} // closed at the next arrival, if somebody waits
	closed  bool

	sent, allowed uint64        // to the peer in this generation
	freed         chan struct{} // closed when there is room again, if somebody waits
}

// room is how many the peer may send, counted from now.
func (q *incoming) room(limit int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken, q.told = 0, 0
	return limit - int(q.queue.Len())
}

// granted begins to count anew what may be sent.
func (q *incoming) granted(n uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sent, q.allowed = 0, uint64(n)
	q.free()
}

// more lets in all have been sent up to n beyond what the peer granted.
func (q *incoming) more(granted uint32, taken uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := uint64(granted) + min(taken, q.sent); n > q.allowed {
		q.allowed = n
		q.free()
	}
}

func (q *incoming) free() {
	if q.freed != nil {
		close(q.freed)
		q.freed = nil
	}
}

// spend takes the right to send one, if there is one.
func (q *incoming) spend() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sent >= q.allowed {
		return false
	}
	q.sent++
	return true
}

// refund gives it back: nothing was sent.
func (q *incoming) refund() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sent--
	q.free()
}

func (q *incoming) vacant() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sent < q.allowed
}

// vacancy returns what is closed when one may be sent.
func (q *incoming) vacancy() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.freed == nil {
		q.freed = make(chan struct{})
	}
	freed := q.freed
	if q.sent < q.allowed || q.closed {
		q.free()
	}
	return freed
}

func (q *incoming) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake()
	q.free()
}

func (q *incoming) wake() {
	if q.arrived != nil {
		close(q.arrived)
		q.arrived = nil
	}
}

// put appends what has arrived; false: there is no room.
func (q *incoming) put(n Notification, limit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || int(q.queue.Len()) >= limit {
		q.lost++
		return false
	}
	n.Lost, q.lost = q.lost, 0
	q.queue.Push(n)
	q.wake()
	return true
}

// take returns the oldest, or what is closed at the next arrival. due says that the
// peer is to be told how many were taken.
func (q *incoming) take(limit int) (n Notification, ok, due bool, arrived <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue.Len() == 0 {
		if q.arrived == nil {
			q.arrived = make(chan struct{})
		}
		return n, false, false, q.arrived
	}
	n = *q.queue.At(q.queue.Head)
	q.queue.Pop()
	q.taken++
	due = q.taken-q.told >= uint64(max(limit/4, 1))
	return n, true, due, nil
}

// report returns how many were taken, if the peer is to be told.
func (q *incoming) report(limit int) (uint64, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken-q.told < uint64(max(limit/4, 1)) {
		return 0, false
	}
	q.told = q.taken
	return q.taken, true
}

// message returns the message that carries n.
func (n *Notification) message() []byte {
	m := peerwire.Message{Kind: peerwire.Notify, Name: []byte(n.Name), Data: n.Data}
	return m.Append(make([]byte, 0, 16+len(n.Name)+len(n.Data)))
}

// Notify tells the peer something when everything that was begun before it on this
// peer, on all queue pairs, is visible there, and returns when the peer has it. A
// peer without room for it is waited for. See [Peer.Do] for the error.
func (p *Peer) Notify(ctx context.Context, n Notification) error {
	_, err := p.do(ctx, &Transfer{Op: Notify, Notify: &n}, nil)
	return err
}

// deliver takes a notification of the peer.
func (p *Peer) deliver(n Notification) {
	if p.inc.put(n, p.c.cfg.Notifications) {
		p.c.counts.notifications.Add(1)
		p.c.tellers.add(p)
	}
}

// Notifications waits for the peer's next notification or immediate and returns
// it; what it announces is visible then. They come in the order of arrival on each
// queue pair. A context that has ended makes it a poll. The error is the
// context's, or unwraps to net.ErrClosed.
func (p *Peer) Notifications(ctx context.Context) (Notification, error) {
	limit := p.c.cfg.Notifications
	for try := 0; ; {
		n, ok, due, arrived := p.inc.take(limit)
		if ok {
			if due {
				p.c.attend(p)
			}
			return n, nil
		}
		if p.isClosed() {
			return n, p.Err()
		}
		if err := ctx.Err(); err != nil {
			return n, err
		}
		if p.c.progress(&try) {
			continue
		}
		select {
		case <-arrived:
		case <-ctx.Done():
		}
	}
}

// progress receives for who waits for a notification, at its try so many since
// something was received, and reports whether to look again before going to sleep.
func (c *Context) progress(try *int) bool {
	switch {
	case c.nic.stepped:
		return false
	case c.driver.Progress():
		*try = 0
		c.step(c.nic.nic.Now(), false)
		return true
	case c.driver.Patience(*try):
		*try++
		return true
	}
	return false
}

// TryNotification is Notifications that does not wait.
func (p *Peer) TryNotification() (Notification, bool) {
	n, err := p.Notifications(overContext)
	return n, err == nil
}

func (p *Peer) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.linkClosed()
}
