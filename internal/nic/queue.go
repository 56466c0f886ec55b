package nic

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// Queue is a queue pair of a NIC. Its methods may be called from any goroutine,
// but for those that qp.QP keeps for the NIC.
type Queue struct {
	*qp.QP
	nic    *NIC
	rx     *receiver // of its shard
	qpn    roce.QPN
	warned atomic.Bool // of datagrams that can never be sent

	// Guarded by the queue pair's lock.
	touched uint64 // the receive batch in which it was last touched
	drains  uint64 // number of the newest drain
	path    *path  // nil for datagrams, and before it is connected
	flight  int64  // its part of the path's
	held    held
	route   *route
	last    *route // of the last datagram, to lastTo
	lastTo  wr.Destination
	slow    device.Congester // late memory last written to, when it can fall behind
	idle    sync.Cond
	waiters int32 // on idle
	reading bool  // a drain is fetching READ responses

	// Guarded by the path's lock.
	inPath     bool // waits for its turn
	nextInPath *Queue

	fault atomic.Pointer[memoryFault]

	// Guarded by the timers' lock; armed may be read without.
	armed atomic.Int64 // mono.Time; 0 is not armed
	pos   int

	// What the ICRC check has seen.
	icrcGood atomic.Bool
	icrcBad  atomic.Uint32
}

// route is where a queue pair's packets go and how they are sealed. It is made
// from one view and never changes, but for the template.
type route struct {
	view    *qp.View
	dst     netip.Addr
	srcPort uint16
	tos     uint8
	shard   uint8 // of the peer, or anyShard
	headers roce.Headers

	template roce.Template // belongs to whoever drains the queue pair
}

// A peer may choose the socket that receives a packet by the low bits of the queue
// pair's number, and for a train by those of its first packet. So a train's packets
// agree in these, where order matters. Where the transport has a few source ports,
// they choose the port as well: then what a device or kernel on the way joins
// agrees too.
const (
	shardMask = 3
	anyShard  = shardMask + 1
)

// currentRoute returns the route of the newest view. Locked.
func (q *Queue) currentRoute() *route {
	v := q.View()
	if q.route == nil || q.route.view != v {
		q.route = q.nic.newRoute(q.qpn, v)
		q.follow(v)
	}
	return q.route
}

// ecnCapable is ECT(0) in the two ECN bits of the TOS, ecnMask both of them, which
// set are CE.
const (
	ecnCapable = 2
	ecnMask    = 3
)

func (n *NIC) newRoute(local roce.QPN, v *qp.View) *route {
	port := roce.SourcePort(v.FlowLabel, local, v.DestQPN)
	shard := uint8(v.DestQPN & shardMask)
	if n.fewPorts {
		port = port&^shardMask | uint16(shard)
	}
	r := n.routeTo(v, v.Peer, v.TrafficClass, port)
	r.shard = shard
	return r
}

func (n *NIC) routeTo(v *qp.View, dst netip.Addr, tos uint8, port uint16) *route {
	r := &route{view: v, dst: dst, tos: tos, shard: anyShard}
	if r.tos&ecnMask == 0 && !n.cfg.NoECN {
		r.tos |= ecnCapable
	}
	r.srcPort = n.conn.SourcePort(port)
	r.headers = roce.Headers{
		Src: n.local, Dst: dst, SrcPort: r.srcPort, DstPort: roce.Port, Frag: roce.DontFragment,
	}
	return r
}

// datagramRoute returns the route of a datagram: the last one, if it went to the
// same place. Locked.
func (q *Queue) datagramRoute(to *wr.Destination) *route {
	if q.last == nil || q.lastTo.Addr != to.Addr || q.lastTo.FlowLabel != to.FlowLabel || q.lastTo.TrafficClass != to.TrafficClass {
		port := roce.DatagramPort(q.qpn)
		if to.FlowLabel != 0 { // as connections do (§1.4)
			port = roce.SourcePort(to.FlowLabel, q.qpn, to.QPN)
		}
		q.lastTo, q.last = *to, q.nic.routeTo(q.View(), to.Addr, to.TrafficClass, port)
	}
	return q.last
}

// PostSend posts work requests and sends what may leave, on the caller's
// goroutine. The error is [ErrClosed] or a *qp.PostError.
func (q *Queue) PostSend(wrs []qp.SendWR) error {
	n := q.nic
	if n.closing.Load() {
		return ErrClosed
	}
	now := n.clock()
	err := q.QP.PostSend(now, wrs)
	n.flush(now, q)
	return err
}

// Post posts work requests like PostSend, at now on the NIC's clock, and leaves them to
// the next Ring.
func (q *Queue) Post(now mono.Time, wrs []qp.SendWR) error {
	if q.nic.closing.Load() {
		return ErrClosed
	}
	return q.QP.PostSend(now, wrs)
}

// Ring sends what may leave, on the caller's goroutine. now is that of the newest Post.
func (q *Queue) Ring(now mono.Time) { q.nic.flush(now, q) }

// PostRecv posts receives. The error is [ErrClosed] or a *qp.PostError.
func (q *Queue) PostRecv(wrs []qp.RecvWR) error {
	if q.nic.closing.Load() {
		return ErrClosed
	}
	drain, err := q.QP.PostRecv(wrs)
	if drain {
		q.nic.flush(q.nic.clock(), q)
	}
	return err
}

// Modify changes attributes and state, see qp.QP.Modify. When the device has
// failed, only RESET and ERR are left: else the error is a *[DeviceError].
func (q *Queue) Modify(attr *qp.Attr, mask qp.AttrMask) error {
	if q.nic.closing.Load() {
		return ErrClosed
	}
	live := mask&qp.MaskState != 0 && attr.State != qp.Err && attr.State != qp.Reset
	if err := q.nic.broken.Load(); err != nil && live {
		return err
	}
	now := q.nic.clock()
	if err := q.QP.Modify(now, attr, mask); err != nil {
		return err
	}
	q.nic.flush(now, q)
	if err := q.nic.broken.Load(); err != nil && live { // fatal may have missed it
		q.nic.fail(now, q)
		return err
	}
	return nil
}

// Close destroys the queue pair: its number stops existing, completions that were
// not given yet are dropped. Closing twice is fine.
func (q *Queue) Close() {
	if q.nic.qps.remove(q) {
		q.nic.retire(q)
	}
}

// Deadline returns when the queue pair wants to be looked at; 0 is never.
func (q *Queue) Deadline() mono.Time {
	q.Lock()
	defer q.Unlock()
	return q.QP.Deadline()
}
