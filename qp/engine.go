package qp

import (
	"net/netip"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce/rc"
	"github.com/gohixl/hixl/roce/uc"
	"github.com/gohixl/hixl/roce/ud"
	"github.com/gohixl/hixl/roce/wr"
)

// engine is what a queue pair needs of a protocol engine, in the terms of
// package roce/rc. The reliable one is also held by its own type, which the
// packet path calls.
type engine interface {
	Post(now mono.Time, r *wr.Request) error
	Commit(now mono.Time, token uint64, o wr.Outcome, result uint64)
	Hold(token uint64)
	Fetched(now mono.Time, token uint64, o wr.Outcome, held bool)
	Drain(now mono.Time, b *wr.Batch) (more bool)
	Completions() []cq.Completion
	ClearCompletions()
	Fail(status cq.Status)
	Failed() bool
	Cause() rc.Cause
	Idle() bool
	Outstanding() int
	Quiesce(on bool)
	Quiet() bool
	SetAccess(a mr.Access)
}

// Arrival is what a datagram's receive tells of how it came (§1.10).
type Arrival struct {
	Src     netip.Addr
	Network [ud.GRHLen]byte
}

// ucEngine and udEngine adapt the engines without timers and acknowledgements.
type ucEngine struct{ *uc.UC }

func (e ucEngine) Post(_ mono.Time, r *wr.Request) error { return e.UC.Post(r) }

func (e ucEngine) Commit(_ mono.Time, token uint64, o wr.Outcome, _ uint64) { e.UC.Commit(token, o) }

func (ucEngine) Hold(uint64) {}

func (e ucEngine) Fetched(_ mono.Time, token uint64, o wr.Outcome, _ bool) { e.UC.Fetched(token, o) }

func (e ucEngine) Drain(_ mono.Time, b *wr.Batch) bool { return e.UC.Drain(b) }

func (e ucEngine) Cause() rc.Cause { return rc.Cause{Status: e.Status()} }

type udEngine struct{ *ud.UD }

func (e udEngine) Post(_ mono.Time, r *wr.Request) error { return e.UD.Post(r) }

func (e udEngine) Commit(_ mono.Time, token uint64, o wr.Outcome, _ uint64) { e.UD.Commit(token, o) }

func (udEngine) Hold(uint64) {}

func (e udEngine) Fetched(_ mono.Time, token uint64, o wr.Outcome, _ bool) { e.UD.Fetched(token, o) }

func (e udEngine) Drain(_ mono.Time, b *wr.Batch) bool { return e.UD.Drain(b) }

func (e udEngine) Cause() rc.Cause { return rc.Cause{Status: e.Status()} }

func (udEngine) SetAccess(mr.Access) {}

// newEngine makes the engine of the queue pair's type from its attributes.
func (q *QP) newEngine() {
	a := &q.attr
	mtu := a.PathMTU
	if !mtu.Valid() { // a datagram queue pair, or one that never got to RTR
		mtu = q.cfg.MaxMTU
	}
	receives := wr.ReceiveSource(q)
	if q.cfg.SRQ != nil {
		receives = q.cfg.SRQ
	}
	q.rc = nil
	switch q.cfg.Type {
	case RC:
		q.rc = rc.New(rc.Config{
			LocalQPN: q.cfg.QPN, RemoteQPN: a.DestQPN, Peer: a.AV.Addr, PD: q.cfg.PD, MTU: mtu.Bytes(), PKey: DefaultPKey,
			ExpectPSN: a.RecvPSN, Access: a.Access, MaxDestRead: int(a.MaxDestRead), RNRTimerCode: a.MinRNRTimer,
			Receives: receives, MaxRecvSGE: q.cfg.MaxRecvSGE, MaxPending: q.cfg.MaxPending,
			SendQueue: q.cfg.MaxSendWR, MaxSendSGE: q.cfg.MaxSendSGE,
		})
		q.engine = q.rc
	case UC:
		q.engine = ucEngine{uc.New(uc.Config{
			LocalQPN: q.cfg.QPN, RemoteQPN: a.DestQPN, Peer: a.AV.Addr, PD: q.cfg.PD, MTU: mtu.Bytes(), PKey: DefaultPKey,
			ExpectPSN: a.RecvPSN, Access: a.Access, Receives: receives, MaxRecvSGE: q.cfg.MaxRecvSGE,
			SendQueue: q.cfg.MaxSendWR, MaxSendSGE: q.cfg.MaxSendSGE,
		})}
	case UD, GSI:
		q.engine = udEngine{ud.New(ud.Config{
			LocalQPN: q.cfg.QPN, QKey: q.qkey(), MTU: q.cfg.MaxMTU.Bytes(), PKey: DefaultPKey,
			Receives: receives, MaxRecvSGE: q.cfg.MaxRecvSGE, SendQueue: q.cfg.MaxSendWR, MaxSendSGE: q.cfg.MaxSendSGE,
		})}
	}
}

// qkey is the queue pair's Q_Key; that of QP1 is not its user's to choose (§5.2).
func (q *QP) qkey() uint32 {
	if q.cfg.Type == GSI {
		return ud.GSIQKey
	}
	return q.attr.QKey
}

// startSend lets the engine send (RTR→RTS).
func (q *QP) startSend(t *Tuning) {
	window := t.WindowBytes
	if most := q.cfg.MaxWindow; most > 0 {
		window = min(orDefault(window, rc.DefaultWindowBytes), most)
	}
	a := &q.attr
	switch e := q.engine.(type) {
	case *rc.RC:
		e.StartSend(rc.SendConfig{
			FirstPSN: a.SendPSN, MaxRead: int(a.MaxRead), Timeout: a.Timeout, RetryCount: a.RetryCount, RNRRetry: a.RNRRetry,
			FixedTimeout: t.FixedTimeout, WindowBytes: window, WindowPSNs: t.WindowPSNs, AckEvery: t.AckEvery,
		})
	case ucEngine:
		e.StartSend(a.SendPSN)
	case udEngine:
		e.StartSend(a.SendPSN)
	}
}
