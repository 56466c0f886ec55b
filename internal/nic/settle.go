package nic

import (
	"errors"
	"net"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/transport"
)

// write sends what the stage holds. What cannot be sent is lost, as on any wire,
// and comes again by retransmission (R18, R19), unless it is larger than the path
// takes or the transport can never send it, which no retransmission cures.
func (s *sender) write() {
	s.count()
	beforeSend()
	for at := 0; at < len(s.stage.txs); {
		k, err := s.nic.conn.WriteBatch(s.stage.txs[at:])
		at += k
		if err == nil || errors.Is(err, net.ErrClosed) {
			s.stage.lent.giveBack(s.stage.txs[at:])
			return
		}
		at = s.notSent(at, err)
	}
}

// notSent deals with the error that stopped a write at Tx at, and returns where
// to go on.
func (s *sender) notSent(at int, err error) int {
	if errors.Is(err, transport.ErrTrainsOff) {
		s.nic.trainsOff()
		s.stage.split(at)
		return 0
	}
	if errors.Is(err, transport.ErrTooBig) || errors.Is(err, transport.ErrTx) {
		s.refused(s.stage.meta[at].q, err)
	} else {
		s.nic.log.Debug("packet not sent", "error", err)
	}
	s.nic.counters.sendErrors.Add(uint64(s.stage.txs[at].Packets()))
	s.stage.lent.giveBack(s.stage.txs[at : at+1])
	return at + 1
}

func (s *sender) count() {
	c := &s.nic.counters
	c.txPackets.Add(uint64(s.stage.packets))
	c.txBytes.Add(uint64(s.stage.used))
	trains := 0
	for i := range s.stage.txs {
		if s.stage.txs[i].IsTrain() {
			trains++
		}
	}
	if trains > 0 {
		c.txTrains.Add(uint64(trains))
	}
}

// refused makes a connected queue pair fail when its job is settled. A datagram
// queue pair has other destinations: there the packet is lost, as one that the
// network drops, and the log says so once.
func (s *sender) refused(q *Queue, err error) {
	if q.View().Type >= qp.UD {
		if !q.warned.Swap(true) {
			s.nic.log.Warn("datagrams are lost: they can never be sent", "qpn", uint32(q.qpn), "error", err)
		}
		return
	}
	for i := range s.jobs {
		if j := &s.jobs[i]; j.q == q && !j.fail {
			j.fail = true
			s.nic.log.Warn("queue pair fails: its packets can never be sent", "qpn", uint32(q.qpn), "error", err)
		}
	}
}

// settleAll gives the jobs' queue pairs back, now that their packets have left.
func (s *sender) settleAll(now mono.Time) {
	for i := range s.jobs {
		j := &s.jobs[i]
		end := len(s.fetches)
		if i+1 < len(s.jobs) {
			end = s.jobs[i+1].fetches
		}
		j.q.Lock()
		s.settle(now, j, s.fetches[j.fetches:end])
		j.q.Unlock()
	}
	clear(s.jobs)
	clear(s.fetches)
	clear(s.records)
	s.jobs, s.fetches, s.records = s.jobs[:0], s.fetches[:0], s.records[:0]
	s.batch.Reset()
	s.stage.reset()
}

// settle ends a drain: the engine learns what was read, completions are
// published, the timer is armed. When there is more to do the queue pair goes
// back to the list. Locked.
func (s *sender) settle(now mono.Time, j *job, fetches []fetched) {
	q := j.q
	if j.fail && j.gen == q.Gen() { // before a request can complete with success
		q.Fail(cq.StatusLocalQPOperation)
	}
	for i := range fetches {
		f := &fetches[i]
		if e := f.entry; e != nil {
			e.ready, e.outcome = true, f.outcome
			e.dead = e.dead || f.dead
		} else if f.token != 0 {
			q.Fetched(now, j.gen, f.token, f.outcome, false)
		}
	}
	q.reading = false
	q.Publish(q.held.left(j.drains))
	if q.EndDrain(j.more) || q.held.ready() {
		s.todo = append(s.todo, q)
	} else if q.rx.timers.arm(q, q.QP.Deadline()) {
		s.nic.kick()
	}
	if q.waiters > 0 {
		q.idle.Broadcast()
	}
}
