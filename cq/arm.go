package cq

// armState says what the next event waits for.
type armState uint8

const (
	disarmed armState = iota
	armSolicited
	armAny
)

// Arm asks for one event on Events: at the next completion, or with
// solicitedOnly at the next one that the peer asked an event for or that
// failed. Completions that wait already cause none, so poll after arming; the
// result is true when some do. Arming for any completion after arming for
// solicited ones widens it, the reverse changes nothing. An overrun fires it
// too.
func (q *Queue) Arm(solicitedOnly bool) (pending bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	want := armAny
	if solicitedOnly {
		want = armSolicited
	}
	q.arm = max(q.arm, want)
	return q.n > 0 || q.lost > 0 || q.closed
}

// Events delivers one value for each Arm that fired. An event that nobody took
// yet stands for later ones. Close closes the channel.
func (q *Queue) Events() <-chan struct{} { return q.events }

// event fires what was armed. The caller holds mu and knows that the queue is
// not closed.
func (q *Queue) event(solicited bool) {
	if q.arm == armAny || q.arm == armSolicited && solicited {
		q.arm = disarmed
		select {
		case q.events <- struct{}{}:
		default:
		}
	}
}
