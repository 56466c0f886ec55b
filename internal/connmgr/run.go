package connmgr

import (
	"errors"
	"sync"
	"time"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
	"github.com/gohixl/hixl/roce/ud"
	"github.com/gohixl/hixl/roce/wr"
)

// sendPause is how long the rest waits when QP1's send queue is full, because
// another goroutine is sending what is in it, or when late memory is not still.
const sendPause = time.Millisecond

// maxHeld bounds what waits until memory is still. What exceeds it is sent when the
// peer asks again, or the agent does.
const maxHeld = 1024

// runState belongs to who runs.
type runState struct {
	sync.Mutex
	got    []arrival
	later  []func(mono.Time)
	events []cm.Event
	sends  []cm.Send
	held   []cm.Send // until memory is still
	posts  []qp.SendWR
	retry  mono.Time // guarded by the manager's mu
}

// Run implements nic.Service.
func (m *Manager) Run(now mono.Time) (worked bool) {
	m.run.Lock()
	defer m.run.Unlock()
	r := &m.run
	r.got, r.later = m.inbox.take(r.got[:0], r.later[:0])
	m.mu.Lock()
	if m.closed != nil {
		m.mu.Unlock()
		return false
	}
	busy := len(r.got) > 0 || len(m.serving) > 0
	for i := range r.got {
		m.agent.Handle(now, r.got[i].src, m.inbox.mad(&r.got[i]))
	}
	m.agent.Expire(now)
	m.mu.Unlock()
	m.repost()
	if busy && m.inbox.rest == nil {
		m.grow()
	}
	for _, f := range r.later {
		f(now)
	}
	worked = len(r.got)+len(r.later) > 0
	for m.dispatch() {
		worked = true
	}
	worked = m.send(now) || worked
	if err := m.nic.Err(); err != nil {
		m.shut(err)
	}
	return worked
}

// grow gives QP1 the rest of its receives. Where there is no memory for them it
// does with the first.
func (m *Manager) grow() {
	if m.inbox.grow() == nil {
		_ = m.receive(firstSlots, inboxSlots) // refused when the NIC closes
	}
}

// repost makes the slots of what was handled receive again.
func (m *Manager) repost() {
	for i := range m.run.got {
		var sge [1]mr.SGE
		again := [1]qp.RecvWR{m.inbox.receive(m.run.got[i].slot, sge[:])}
		if m.gsi.PostRecv(again[:]) != nil {
			return // the NIC closes
		}
	}
}

// dispatch gives the events that there are to their handlers, and reports whether
// there were any: their commands may have made more.
func (m *Manager) dispatch() bool {
	r := &m.run
	m.mu.Lock()
	r.events = m.agent.TakeEvents(r.events[:0])
	m.mu.Unlock()
	m.free(r.events)
	for i := range r.events {
		e := &r.events[i]
		if h := m.route(e); h != nil {
			h.Event(e)
		}
	}
	n := len(r.events)
	clear(r.events)
	return n > 0
}

// free gives back the numbers of queue pairs whose connections are over, before
// anybody hears of the end: who is told that a dial was refused may dial on with the
// same queue pair at once.
func (m *Manager) free(events []cm.Event) {
	for i := range events {
		if e := &events[i]; e.Kind == cm.EventTimewaitExit && e.QPN != 0 {
			m.nic.FreeQPN(e.QPN)
		}
	}
}

// route finds the handler of an event and does what an event means for the
// manager.
func (m *Manager) route(e *cm.Event) Handler {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.handler[e.ID]
	switch e.Kind {
	case cm.EventConnectRequest:
		if h = m.serving[e.Request.Service]; h == nil { // unlistened meanwhile
			_ = m.agent.Reject(m.nic.Now(), e.ID, cm.RejectParams{Reason: cm.ReasonServiceID})
		}
	case cm.EventSIDRRequest:
		if h = m.serving[e.Request.Service]; h == nil {
			_ = m.agent.AnswerSIDR(m.nic.Now(), e.ID, cm.SIDRAnswer{Status: cm.SIDRUnsupported})
		}
	case cm.EventTimewaitExit:
		delete(m.handler, e.ID)
	case cm.EventSIDRReply:
		delete(m.handler, e.ID)
	case cm.EventUnreachable:
		if _, connection := m.agent.State(e.ID); !connection { // a question
			delete(m.handler, e.ID)
		}
	default:
	}
	return h
}

// send posts what the agent has queued, and reports whether there was anything that
// could go.
func (m *Manager) send(now mono.Time) bool {
	r := &m.run
	m.mu.Lock()
	r.sends = m.agent.TakeSends(r.sends)
	r.retry = 0
	m.mu.Unlock()
	m.hold(now)
	worked := len(r.sends) > 0
	rest := r.sends
	for len(rest) > 0 {
		n, full := m.post(rest[:min(len(rest), sendQueue)])
		rest = rest[n:]
		if full {
			m.mu.Lock()
			r.retry = now.Add(sendPause)
			m.mu.Unlock()
			break
		}
	}
	n := copy(r.sends, rest)
	r.sends = r.sends[:n]
	return worked
}

// hold keeps back what tells of the end of a queue pair while its late memory is
// still being changed: the peer takes it for the word that nothing lands any more.
func (m *Manager) hold(now mono.Time) {
	r := &m.run
	all := append(r.sends, r.held...)
	r.held = r.held[:0]
	kept := all[:0]
	for i := range all {
		if q := all[i].Ends; q != 0 && m.nic.Landing(q) {
			if len(r.held) < maxHeld {
				r.held = append(r.held, all[i])
			}
			continue
		}
		kept = append(kept, all[i])
	}
	r.sends = kept
	if len(r.held) == 0 {
		return
	}
	m.mu.Lock()
	r.retry = now.Add(sendPause)
	m.mu.Unlock()
}

// post posts MADs with one doorbell and returns how many need no further thought:
// they were taken, or never will be.
func (m *Manager) post(sends []cm.Send) (n int, full bool) {
	posts := m.run.posts[:0]
	for i := range sends {
		s := &sends[i]
		posts = append(posts, qp.SendWR{Op: wr.OpSend, Inline: s.MAD[:], To: to(s)})
	}
	m.run.posts = posts
	err := m.gsi.PostSend(posts)
	clear(posts)
	if err == nil {
		return len(sends), false
	}
	var refused *qp.PostError
	if !errors.As(err, &refused) {
		return len(sends), false // the NIC closes
	}
	if errors.Is(err, wr.ErrSendQueueFull) {
		return refused.Index, true
	}
	return refused.Index + 1, false
}

// to is where a MAD goes: QP1 of the peer (§5.2).
func to(s *cm.Send) (d wr.Destination) {
	d.Addr, d.QPN, d.QKey = s.To.WithZone(""), roce.QPNGSI, ud.GSIQKey
	d.FlowLabel, d.TrafficClass = s.FlowLabel, s.TrafficClass
	return d
}
