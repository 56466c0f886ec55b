package hixl

import (
	"fmt"

	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
)

// ConnectOptions are this side's choices for a connection. The zero value is
// good. Where 0 means a default, [None] is 0 itself.
type ConnectOptions struct {
	// MTU is the path MTU in bytes of payload, 256 to 4096; 0 is the smaller of
	// what both sides can do.
	MTU int
	// Timeout is the ACK timeout exponent, 4.096 µs · 2^Timeout, 1..31, default
	// [DefaultTimeout]. A silent peer is given up after about (Retries+1) of them.
	Timeout int
	// Retries is the number of timeouts without progress that are survived, 1..7,
	// default 7.
	Retries int
	// RNRRetries is how often a peer without a receive is tried again, 1..7;
	// default 7, without end.
	RNRRetries int
	// RNRTimer is the code of the pause asked of a peer that finds no receive
	// here, 1..31, default [DefaultRNRTimer].
	RNRTimer int
	// MaxReads is the number of READs and atomics in flight from here, 1..128,
	// default [DefaultReads], and never more than the peer serves.
	MaxReads int
	// TrafficClass is DSCP<<2 | ECN of packets sent.
	TrafficClass uint8
	// FlowLabel chooses the UDP source port, by which paths are chosen; 20 bits, 0
	// derives it from the queue pair numbers.
	FlowLabel uint32
	// Window bounds what is unacknowledged, in bytes of packets; default 512 packets of
	// 4096 bytes, which with what else they weigh are 2,129,920, at most
	// [Config.PathWindow].
	Window int
	// FixedTimeout switches off the shorter timeouts that measured round trips
	// give.
	FixedTimeout bool
}

// Address returns what the peer needs to connect to this queue pair.
func (q *QP) Address() Address {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Address{
		Addr: q.nic.Address(), QPN: q.QPN(), PSN: q.psn, MTU: q.nic.MTU(), MaxReads: q.reads, Hixl: true,
	}
}

// Connect joins the queue pair with the peer whose Address is remote and makes it
// ready to send. The peer does the same with this one's; packets of whoever is
// first are sent again until the other is ready. The error unwraps to
// [ErrConfig], qp.ErrAttr or [ErrState], and then nothing has changed.
func (q *QP) Connect(remote Address, o ConnectOptions) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := remote.check(); err != nil {
		return err
	}
	mtu, err := o.mtu(q.nic.MTU(), remote.MTU)
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	if q.kind == UD {
		return &nic.ConfigError{Field: "QPConfig.Type", Value: q.kind, Allowed: "RC or UC: a datagram queue pair is made ready by Activate"}
	}
	return q.bringUp(&qp.Attr{
		PathMTU: mtu, DestQPN: remote.QPN, RecvPSN: remote.PSN,
		MaxDestRead: uint8(q.reads), MinRNRTimer: uint8(orDefault(o.RNRTimer, DefaultRNRTimer)),
		AV:      qp.AddressVector{Addr: remote.Addr, TrafficClass: o.TrafficClass, FlowLabel: o.FlowLabel, SmallIDs: remote.Hixl},
		SendPSN: q.psn, Timeout: uint8(orDefault(o.Timeout, DefaultTimeout)),
		RetryCount: uint8(orDefault(o.Retries, DefaultRetries)), RNRRetry: uint8(orDefault(o.RNRRetries, DefaultRetries)),
		MaxRead: uint8(min(orDefault(o.MaxReads, DefaultReads), remote.MaxReads)),
		Tuning:  o.tuning(),
	})
}

// Activate makes a datagram queue pair ready to receive and to send: it has no
// one peer to connect to. Each SendWR says in To where it goes.
func (q *QP) Activate() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.kind != UD {
		return &nic.ConfigError{Field: "QPConfig.Type", Value: q.kind, Allowed: "UD: this queue pair needs Connect"}
	}
	if err := q.q.Modify(&qp.Attr{State: qp.RTR}, qp.MaskState); err != nil {
		return err
	}
	return q.q.Modify(&qp.Attr{State: qp.RTS, SendPSN: q.psn}, qp.MaskState|qp.MaskSendPSN)
}

// mtu agrees on a path MTU.
func (o *ConnectOptions) mtu(local, remote int) (roce.PathMTU, error) {
	both := min(local, remote)
	if o.MTU > both {
		return 0, &nic.ConfigError{
			Field: "ConnectOptions.MTU", Value: o.MTU, Allowed: fmt.Sprintf("at most %d: this side can do %d, the peer %d", both, local, remote),
		}
	}
	return roce.PathMTUFor(orDefault(o.MTU, both))
}

func (o *ConnectOptions) check() error {
	for _, f := range [...]struct {
		name       string
		value, max int
	}{
		{"Timeout", orDefault(o.Timeout, DefaultTimeout), 31},
		{"Retries", orDefault(o.Retries, DefaultRetries), 7},
		{"RNRRetries", orDefault(o.RNRRetries, DefaultRetries), 7},
		{"RNRTimer", orDefault(o.RNRTimer, DefaultRNRTimer), 31},
		{"MaxReads", orDefault(o.MaxReads, DefaultReads), qp.MaxReads},
		{"Window", o.Window, 1 << 30},
	} {
		if f.value < 0 || f.value > f.max {
			return &nic.ConfigError{Field: "ConnectOptions." + f.name, Value: f.value, Allowed: fmt.Sprintf("0 to %d", f.max)}
		}
	}
	if o.Timeout == None {
		return &nic.ConfigError{
			Field: "ConnectOptions.Timeout", Value: "None", Allowed: "1 to 31: a connection that never times out would not notice a dead peer",
		}
	}
	return nil
}
