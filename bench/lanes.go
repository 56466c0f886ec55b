package bench

import (
	"errors"
	"fmt"

	"github.com/gohixl/hixl"
)

// maxOpenQPs is the largest number of queue pairs that a run keeps open at once.
const maxOpenQPs = 4 * MaxQPs

// maxCQ is the largest completion queue. One that is smaller than what its lanes
// can have outstanding is large enough while work succeeds, since few sends are
// signaled.
const maxCQ = 1 << 20

// ackTimeout is the ACK timeout exponent, one second: a machine under test may stand
// still. What is lost is asked for much earlier.
const ackTimeout = 18

// laneShift divides a work request's ID: above it the lane, below it the number
// of messages up to and including this one.
const laneShift = 48

func wrID(lane int, n uint64) uint64 { return uint64(lane)<<laneShift | n }

func splitID(id uint64) (lane int, n uint64) { return int(id >> laneShift), id & (1<<laneShift - 1) }

// lanes are the queue pairs of a cell on one side, with the queues that their
// sends and receives complete into.
type lanes struct {
	cell   cell
	lay    layout
	qps    []*hixl.QP
	sendCQ *hixl.CQ
	recvCQ *hixl.CQ
}

// openLanes makes a cell's queue pairs, not connected yet.
func (e *endpoint) openLanes(ce cell, lay layout) (*lanes, error) {
	l := &lanes{cell: ce, lay: lay}
	var err error
	if l.sendCQ, err = e.nic.CreateCQ(min(ce.QPs*(ce.Depth+1), maxCQ)); err != nil {
		return nil, err
	}
	if l.recvCQ, err = e.nic.CreateCQ(ce.QPs * ce.receives()); err != nil {
		return nil, errors.Join(err, l.close())
	}
	for range ce.QPs {
		q, err := e.nic.CreateQP(hixl.QPConfig{
			PD: e.pd, SendCQ: l.sendCQ, RecvCQ: l.recvCQ,
			MaxSendWR: ce.Depth, MaxRecvWR: ce.receives(), MaxSendSGE: 1, MaxRecvSGE: 1, MaxReads: ce.reads(),
		})
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		l.qps = append(l.qps, q)
	}
	return l, nil
}

func (l *lanes) addresses() []string {
	out := make([]string, len(l.qps))
	for i, q := range l.qps {
		out[i] = q.Address().String()
	}
	return out
}

// connect connects each queue pair to the peer's of the same lane.
func (l *lanes) connect(remote []string) error {
	if len(remote) != len(l.qps) {
		return fmt.Errorf("the peer has %d queue pairs for %d", len(remote), len(l.qps))
	}
	for i, s := range remote {
		a, err := hixl.ParseAddress(s)
		if err != nil {
			return err
		}
		if err := l.qps[i].Connect(a, hixl.ConnectOptions{MTU: l.cell.MTU, MaxReads: l.cell.reads(), Timeout: ackTimeout}); err != nil {
			return err
		}
	}
	return nil
}

// acknowledged is how many packets of this side's requests the peer has answered.
func (l *lanes) acknowledged() (n uint64) {
	for _, q := range l.qps {
		n += q.Stats().Acknowledged
	}
	return n
}

func (l *lanes) close() error {
	var errs []error
	for _, q := range l.qps {
		errs = append(errs, q.Close())
	}
	for _, c := range []*hixl.CQ{l.sendCQ, l.recvCQ} {
		if c != nil {
			c.Close()
		}
	}
	return errors.Join(errs...)
}
