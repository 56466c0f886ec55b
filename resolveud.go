package hixl

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/gohixl/hixl/internal/connmgr"
	"github.com/gohixl/hixl/roce/cm"
)

// DefaultQKey is the Q_Key of librdmacm's datagram queue pairs.
const DefaultQKey = cm.DefaultQKey

// ResolveOptions say how to ask for a datagram queue pair.
type ResolveOptions struct {
	// PrivateData tells the other application something, up to [MaxResolveData]
	// bytes, padded with zeros.
	PrivateData []byte
	// LocalPort is the port to ask from; 0 is a random one of 49152 to 65535.
	LocalPort uint16
	// Resolver looks names up; nil is net.DefaultResolver.
	Resolver *net.Resolver
}

// Resolved is a datagram queue pair of another NIC.
type Resolved struct {
	// To is what [SendWR] needs to send there.
	To Destination
	// RemoteAddr is the address and port that answered.
	RemoteAddr netip.AddrPort
	// PrivateData is what the other application said, padded with zeros to
	// [MaxAnswerData] bytes.
	PrivateData []byte
}

// ResolveUD asks which datagram queue pair serves address, "host:port" of RDMA CM's
// UDP port space, as librdmacm's rdma_connect does with datagram ids (SIDR). There
// is no connection: nobody is told when either side ends. ctx bounds it; without a
// deadline a silent peer is given up after about a minute. The error is a
// *[ConnError].
func (n *NIC) ResolveUD(ctx context.Context, address string, o ResolveOptions) (*Resolved, error) {
	fail := func(err error) (*Resolved, error) { return nil, &ConnError{Op: "resolve", Addr: address, Err: err} }
	peers, err := n.lookup(ctx, o.Resolver, "udp", address)
	if err != nil {
		return fail(err)
	}
	q, err := n.StartResolveUD(peers[0], o)
	if err != nil {
		return nil, err
	}
	select {
	case <-q.Done():
		return q.Result()
	case <-ctx.Done():
		q.Cancel()
		return fail(ctx.Err())
	}
}

// Resolving is a question for a datagram queue pair that has been asked.
type Resolving struct {
	cm     *connmgr.Manager
	id     cm.CommID
	remote netip.AddrPort
	done   chan struct{}

	once sync.Once
	got  *Resolved // set before done is closed
	err  error
}

// StartResolveUD asks and returns at once. It is for those who drive a stepped NIC.
// The error is a *[ConnError].
func (n *NIC) StartResolveUD(peer netip.AddrPort, o ResolveOptions) (*Resolving, error) {
	fail := func(err error) (*Resolving, error) {
		return nil, &ConnError{Op: "resolve", Addr: peer.String(), Err: closedOr(err)}
	}
	if len(o.PrivateData) > MaxResolveData {
		return fail(tooLong(len(o.PrivateData), MaxResolveData))
	}
	q := &Resolving{cm: n.cm, remote: netip.AddrPortFrom(peer.Addr().WithZone(""), peer.Port()), done: make(chan struct{})}
	var err error
	q.id, err = n.cm.Resolve(cm.ResolveParams{
		Peer: q.remote.Addr(), Service: cm.PortSpaceUDP.Service(peer.Port()), SrcPort: o.LocalPort, Private: o.PrivateData,
	}, resolveHandler{q})
	if err != nil {
		return fail(err)
	}
	return q, nil
}

// Done is closed when there is an answer, or none will come.
func (q *Resolving) Done() <-chan struct{} { return q.done }

// Result returns the answer after Done. The error is a *[ConnError].
func (q *Resolving) Result() (*Resolved, error) {
	<-q.done
	return q.got, q.err
}

// Cancel ends the question. Result then has context.Canceled, unless it is
// answered.
func (q *Resolving) Cancel() {
	q.cm.Forget(q.id)
	q.end(nil, context.Canceled)
}

func (q *Resolving) end(got *Resolved, err error) {
	q.once.Do(func() {
		q.got = got
		if err != nil {
			q.err = &ConnError{Op: "resolve", Addr: q.remote.String(), Err: err}
		}
		close(q.done)
	})
}

// resolveHandler keeps the handler's methods out of Resolving's.
type resolveHandler struct{ *Resolving }

func (h resolveHandler) Event(e *cm.Event) {
	switch {
	case e.Kind == cm.EventUnreachable:
		h.end(nil, ErrUnreachable)
	case e.Kind != cm.EventSIDRReply:
	case e.Status != cm.SIDROK:
		h.end(nil, &DeclinedError{Peer: h.remote, Status: e.Status, PrivateData: e.Private})
	default:
		h.end(&Resolved{
			To: Destination{Addr: h.remote.Addr(), QPN: e.QPN, QKey: e.QKey}, RemoteAddr: h.remote, PrivateData: e.Private,
		}, nil)
	}
}

func (h resolveHandler) Closed(why error) { h.end(nil, closedOr(why)) }
