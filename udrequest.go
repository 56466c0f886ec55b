package hixl

import (
	"net/netip"

	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/roce/cm"
)

// UDRequest is somebody's question for a datagram queue pair. It waits a minute.
type UDRequest struct {
	listener *UDListener
	id       cm.CommID
	remote   netip.AddrPort
	private  []byte
}

// PrivateData returns what the other application says, padded with zeros to
// [MaxResolveData] bytes.
func (r *UDRequest) PrivateData() []byte { return r.private }

// RemoteAddr returns the address and port that ask.
func (r *UDRequest) RemoteAddr() netip.AddrPort { return r.remote }

// LocalAddr returns the listener's address.
func (r *UDRequest) LocalAddr() netip.AddrPort { return r.listener.addr }

// Accept answers with a datagram queue pair and up to [MaxAnswerData] bytes. The
// error is a *[ConnError].
func (r *UDRequest) Accept(q *QP, privateData []byte) error {
	if q == nil {
		return r.fail(&nic.ConfigError{Field: "QP", Value: "missing", Allowed: "a datagram queue pair"})
	}
	if err := checkAnswer(q, privateData); err != nil {
		return r.fail(err)
	}
	return r.answer(cm.SIDRAnswer{QPN: q.QPN(), QKey: q.qkey, Private: privateData})
}

// Reject refuses with up to [MaxAnswerData] bytes of reasons. The error is a
// *[ConnError].
func (r *UDRequest) Reject(privateData []byte) error {
	if err := checkAnswer(nil, privateData); err != nil {
		return r.fail(err)
	}
	return r.answer(cm.SIDRAnswer{Status: cm.SIDRRejected, Private: privateData})
}

func (r *UDRequest) answer(a cm.SIDRAnswer) error {
	if err := r.listener.cm.AnswerSIDR(r.id, a); err != nil {
		return r.fail(closedOr(err))
	}
	return nil
}

func (r *UDRequest) fail(err error) error {
	return &ConnError{Op: "answer", Addr: r.remote.String(), Err: err}
}

// checkAnswer refuses what cannot be told.
func checkAnswer(q *QP, private []byte) error {
	switch {
	case len(private) > MaxAnswerData:
		return tooLong(len(private), MaxAnswerData)
	case q != nil && q.kind != UD:
		return &nic.ConfigError{Field: "QP", Value: q.kind, Allowed: "UD"}
	case q != nil && q.qkey == 0:
		return &nic.ConfigError{Field: "QP", Value: "Q_Key 0", Allowed: "a Q_Key other than 0, such as DefaultQKey: 0 cannot be told"}
	}
	return nil
}
