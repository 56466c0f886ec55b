package hixl

import (
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce/cm"
)

// cmCount writes a number for package cm, where 0 means the default.
func cmCount(n int) uint8 {
	if n == 0 {
		return cm.None
	}
	return uint8(n)
}

// cm translates the options for a request (§5.6).
func (o *ConnectOptions) cm(n *NIC) (p cm.ConnectParams, err error) {
	if err := o.check(); err != nil {
		return p, err
	}
	mtu, err := o.mtu(n.MTU(), n.MTU())
	return cm.ConnectParams{
		MTU: mtu, MaxRead: cmCount(orDefault(o.MaxReads, DefaultReads)),
		RetryCount: cmCount(orDefault(o.Retries, DefaultRetries)), RNRRetry: cmCount(orDefault(o.RNRRetries, DefaultRetries)),
		MinRNRTimer: cmCount(orDefault(o.RNRTimer, DefaultRNRTimer)),
		ACKTimeout:  uint8(o.Timeout), FlowLabel: o.FlowLabel, TrafficClass: o.TrafficClass,
	}, err
}

// join connects the queue pair as connection management says (§5.7).
func (q *QP) join(p *cm.QPParams, o *ConnectOptions, small bool) error {
	timeout := uint8(o.Timeout)
	if timeout == 0 {
		timeout = p.Timeout
	}
	if timeout == 0 { // never, says the peer; a dead one would not be noticed
		timeout = cm.DefaultACKTimeout
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.psn = p.SendPSN
	return q.bringUp(&qp.Attr{
		PathMTU: p.MTU, DestQPN: p.DestQPN, RecvPSN: p.RecvPSN, MaxDestRead: p.MaxDestRead, MinRNRTimer: p.MinRNRTimer,
		AV:      qp.AddressVector{Addr: p.Peer, TrafficClass: p.TrafficClass, FlowLabel: p.FlowLabel, SmallIDs: small},
		SendPSN: p.SendPSN, Timeout: timeout, RetryCount: p.RetryCount, RNRRetry: p.RNRRetry, MaxRead: p.MaxRead,
		Tuning: o.tuning(),
	})
}

func (o *ConnectOptions) tuning() qp.Tuning {
	return qp.Tuning{WindowBytes: o.Window, FixedTimeout: o.FixedTimeout}
}

// bringUp moves a connected queue pair from INIT to RTS. q.mu is held.
func (q *QP) bringUp(a *qp.Attr) error {
	rtr, rts := qp.MaskState|qp.MaskPathMTU|qp.MaskDestQPN|qp.MaskRecvPSN|qp.MaskAV, qp.MaskState|qp.MaskSendPSN
	if q.kind == RC {
		rtr |= qp.MaskMaxDestRead | qp.MaskMinRNRTimer
		rts |= qp.MaskTimeout | qp.MaskRetryCount | qp.MaskRNRRetry | qp.MaskMaxRead
	}
	a.State = qp.RTR
	if err := q.q.Modify(a, rtr); err != nil {
		return err
	}
	a.State = qp.RTS
	return q.q.Modify(a, rts)
}
