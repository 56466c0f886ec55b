package nictest

import (
	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/internal/nic"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
)

// PairConfig describes a connection between two hosts. The zero value is a good
// one.
type PairConfig struct {
	// MTU is the path MTU, default the largest.
	MTU roce.PathMTU
	// PSN holds the first PSNs of the two directions.
	PSN [2]roce.PSN
	// MaxReads is the READ depth of both sides, default 16; negative is 0.
	MaxReads int
	// Timeout is the ACK timeout exponent, default 14 (67 ms), and 18 (1 s) in real
	// time, in which a machine may stand still.
	Timeout uint8
	// Retry and RNRRetry are the retry counts, default 7; negative is 0.
	Retry, RNRRetry int
	// MinRNRTimer is the RNR timer code, default 1 (10 µs).
	MinRNRTimer uint8
	// Access is what each side grants, default everything.
	Access mr.Access
	// ForeignIDs makes the sides take each other for foreign stacks.
	ForeignIDs bool
	// QP is the base of both queue pairs' configuration; PD and sinks are filled in
	// when they are missing, SRQ is taken by the second side only.
	QP     qp.Config
	Tuning qp.Tuning
	// PDs, where not nil, are the protection domains of the two sides.
	PDs [2]*mr.PD
	// Unconnected leaves both queue pairs in INIT.
	Unconnected bool
}

// End is one side of a connection.
type End struct {
	*nic.Queue
	NIC *nic.NIC
	PD  *mr.PD
	// Send and Recv are its completion queues.
	Send, Recv *cq.Queue

	fabric *Fabric
}

func orElse[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// fill puts defaults where there is 0; negative values stay, they mean 0.
func (c PairConfig) fill(mtu roce.PathMTU) PairConfig {
	c.MTU = orElse(c.MTU, mtu)
	c.MaxReads = orElse(c.MaxReads, 16)
	c.Timeout = orElse(c.Timeout, 14)
	c.Retry, c.RNRRetry = orElse(c.Retry, 7), orElse(c.RNRRetry, 7)
	c.MinRNRTimer = orElse(c.MinRNRTimer, 1)
	c.Access = orElse(c.Access, qp.RemoteAccess)
	return c
}

// Pair connects host a with host b.
func (f *Fabric) Pair(a, b int, cfg PairConfig) (*End, *End) {
	f.tb.Helper()
	if f.Net == nil {
		cfg.Timeout = orElse(cfg.Timeout, 18)
	}
	cfg = cfg.fill(f.NICs[a].MTU())
	second := cfg.QP
	cfg.QP.SRQ = nil
	if cfg.PDs[0] != nil {
		cfg.QP.PD, second.PD = cfg.PDs[0], cfg.PDs[1]
	}
	x, y := f.end(a, cfg.QP), f.end(b, second)
	for _, e := range []*End{x, y} {
		e.ToInit(cfg)
	}
	if !cfg.Unconnected {
		x.Connect(y, cfg, 0)
		y.Connect(x, cfg, 1)
	}
	return x, y
}

func (f *Fabric) end(host int, cfg qp.Config) *End {
	f.tb.Helper()
	n := f.NICs[host]
	e := &End{NIC: n, PD: cfg.PD, fabric: f}
	if e.PD == nil {
		e.PD = n.AllocPD()
	}
	cfg.PD = e.PD
	cfg.MaxInline = orElse(cfg.MaxInline, qp.MaxInline)
	var err error
	e.Send, err = cq.New(1 << 16)
	require.NoError(f.tb, err)
	e.Recv, err = cq.New(1 << 16)
	require.NoError(f.tb, err)
	if cfg.SendSink == nil {
		cfg.SendSink = e.Send
	}
	if cfg.RecvSink == nil {
		cfg.RecvSink = e.Recv
	}
	e.Queue, err = n.CreateQP(cfg)
	require.NoError(f.tb, err)
	return e
}

// DriveSend has who waits on Send receive for the end.
func (e *End) DriveSend() {
	d := e.NIC.NewDriver()
	d.Add(e.Queue)
	e.Send.SetDriver(d)
}

// ToInit moves the end from RESET to INIT.
func (e *End) ToInit(cfg PairConfig) {
	e.fabric.tb.Helper()
	mask := qp.MaskState | qp.MaskPort | qp.MaskPKeyIndex
	if e.Config().Type == qp.UD {
		mask |= qp.MaskQKey
	} else {
		mask |= qp.MaskAccess
	}
	require.NoError(e.fabric.tb, e.Modify(&qp.Attr{State: qp.Init, Port: 1, Access: cfg.Access, QKey: QKey}, mask))
}

// QKey is that of every datagram queue pair.
const QKey = 0x01234567

// masks are the attributes of INIT→RTR and RTR→RTS beside the state.
var masks = [...][2]qp.AttrMask{
	qp.RC: {
		qp.MaskPathMTU | qp.MaskDestQPN | qp.MaskRecvPSN | qp.MaskMaxDestRead | qp.MaskMinRNRTimer | qp.MaskAV,
		qp.MaskSendPSN | qp.MaskTimeout | qp.MaskRetryCount | qp.MaskRNRRetry | qp.MaskMaxRead,
	},
	qp.UC: {qp.MaskPathMTU | qp.MaskDestQPN | qp.MaskRecvPSN | qp.MaskAV, qp.MaskSendPSN},
	qp.UD: {0, qp.MaskSendPSN},
}

// Connect moves the end from INIT to RTS; side says which of the PSNs are its own.
func (e *End) Connect(peer *End, cfg PairConfig, side int) {
	e.fabric.tb.Helper()
	cfg = cfg.fill(e.NIC.MTU())
	mask := masks[e.Config().Type]
	require.NoError(e.fabric.tb, e.Modify(&qp.Attr{
		State: qp.RTR, PathMTU: cfg.MTU, DestQPN: peer.QPN(), RecvPSN: cfg.PSN[1-side],
		MaxDestRead: uint8(max(cfg.MaxReads, 0)), MinRNRTimer: cfg.MinRNRTimer,
		AV: qp.AddressVector{Addr: peer.NIC.Addr(), SmallIDs: !cfg.ForeignIDs},
	}, qp.MaskState|mask[0]))
	require.NoError(e.fabric.tb, e.Modify(&qp.Attr{
		State: qp.RTS, SendPSN: cfg.PSN[side], Timeout: cfg.Timeout, RetryCount: uint8(max(cfg.Retry, 0)), RNRRetry: uint8(max(cfg.RNRRetry, 0)),
		MaxRead: uint8(max(cfg.MaxReads, 0)), Tuning: cfg.Tuning,
	}, qp.MaskState|mask[1]))
}

// AllAccess is every right of a region.
const AllAccess = mr.LocalWrite | mr.RemoteWrite | mr.RemoteRead | mr.RemoteAtomic | mr.RemoteInvalidate

// Region registers size bytes of host memory with all rights.
func (e *End) Region(size int) *mr.Region { return e.Register(host.New(make([]byte, size))) }

// Register registers a whole memory with all rights.
func (e *End) Register(m device.Memory) *mr.Region {
	e.fabric.tb.Helper()
	r, err := e.PD.Register(m, mr.Options{Access: AllAccess})
	require.NoError(e.fabric.tb, err)
	return r
}

// Post posts send work requests that must be accepted.
func (e *End) Post(wrs ...qp.SendWR) {
	e.fabric.tb.Helper()
	require.NoError(e.fabric.tb, e.PostSend(wrs))
}

// Receive posts receives that must be accepted.
func (e *End) Receive(wrs ...qp.RecvWR) {
	e.fabric.tb.Helper()
	require.NoError(e.fabric.tb, e.PostRecv(wrs))
}

// Take returns what waits in a completion queue.
func (e *End) Take(q *cq.Queue) []cq.Completion {
	e.fabric.tb.Helper()
	out := make([]cq.Completion, q.Len())
	n, err := q.Poll(out)
	require.NoError(e.fabric.tb, err)
	return out[:n]
}
