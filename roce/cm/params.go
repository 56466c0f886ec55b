package cm

import (
	"net/netip"

	"github.com/gohixl/hixl/roce"
)

// ConnectParams describes a connection to ask for. Peer, Service and QPN must be
// given.
type ConnectParams struct {
	// Peer is the address of the other NIC, of the same family as ours.
	Peer netip.Addr
	// Service is what to reach there, such as PortSpaceTCP.Service(7174).
	Service ServiceID
	// SrcPort is this side's port, which IP service ids tell the peer; 0 takes
	// a random one of 49152 to 65535.
	SrcPort uint16
	// QPN is the number of our queue pair, 2 to 0xFFFFFE, which must be in INIT.
	QPN       roce.QPN
	Transport Transport // RC or UC
	// StartPSN is the PSN that we expect first; nil is random.
	StartPSN *roce.PSN
	MTU      roce.PathMTU // 0 takes Config.MTU
	// MaxRead is how many READs and atomics we want in flight, MaxDestRead how
	// many we serve; 0 takes Config.MaxReads, [None] is 0.
	MaxRead, MaxDestRead uint8
	// RetryCount and RNRRetry are 1 to 7; 0 takes 7, [None] is 0. The first is
	// for both sides' requests, the second for the peer's.
	RetryCount, RNRRetry uint8
	// MinRNRTimer is the code of RNR NAKs that we send; 0 takes
	// [DefaultRNRTimer], [None] is 0.
	MinRNRTimer uint8
	// ACKTimeout is the exponent of the QP timeout that suits the path, 1 to 31;
	// 0 takes [DefaultACKTimeout]. Not more than the ACK delay of either side has
	// room below is sent, see [ACKTimeout].
	ACKTimeout uint8
	// ResponseTimeout is the exponent of how long either side may take to
	// answer, 1 to 31; 0 takes [DefaultResponseTimeout].
	ResponseTimeout uint8
	// CMRetries is how often messages are resent, 1 to 15; 0 takes
	// [DefaultCMRetries], [None] is 0.
	CMRetries uint8
	// FlowLabel chooses the UDP source port of both sides, 20 bits; 0 derives it
	// from the ports, or takes a random one.
	FlowLabel    uint32
	TrafficClass uint8
	PKey         uint16 // 0 is 0xFFFF
	// SRQ tells the peer that receives come from a shared queue.
	SRQ bool
	// Private is for the peer's application: at most 56 bytes, 92 with a service
	// id that is not an IP one. The peer sees it padded with zeros. Not kept.
	Private []byte
}

// AcceptParams says how to accept a connection. QPN must be given.
type AcceptParams struct {
	// QPN is the number of our queue pair, 2 to 0xFFFFFE.
	QPN roce.QPN
	// StartPSN is the PSN that we expect first; nil is random.
	StartPSN *roce.PSN
	// MaxRead and MaxDestRead are as in [ConnectParams]. What exceeds the
	// peer's offer ([Request]) is cut.
	MaxRead, MaxDestRead uint8
	// RNRRetry is how often the peer may retry after an RNR NAK: 1 to 7; 0 takes
	// 7, [None] is 0.
	RNRRetry uint8
	// MinRNRTimer is as in [ConnectParams].
	MinRNRTimer uint8
	SRQ         bool
	// Private is for the peer's application, at most 196 bytes. Not kept.
	Private []byte
}

// RejectParams says how to refuse a connection.
type RejectParams struct {
	// Reason is what to say; 0 takes [ReasonConsumer].
	Reason Reason
	// Info is the additional information of some reasons, at most [MaxARI] bytes.
	Info []byte
	// Private is for the peer's application, at most 148 bytes.
	Private []byte
}

// QPParams are the attributes of a queue pair that connection management
// determines (§5.7). Names and units are those of package qp's.
type QPParams struct {
	// Peer is the address of the other end, without zone.
	Peer      netip.Addr
	Transport Transport
	DestQPN   roce.QPN
	// SendPSN is the PSN of our first request, RecvPSN of the peer's.
	SendPSN, RecvPSN roce.PSN
	MTU              roce.PathMTU
	// MaxRead is how many READs and atomics we may have in flight, MaxDestRead
	// how many we must serve.
	MaxRead, MaxDestRead uint8
	// Timeout is the exponent of the ACK timeout; 0 is never, if the peer says so.
	Timeout              uint8
	RetryCount, RNRRetry uint8
	MinRNRTimer          uint8
	FlowLabel            uint32
	TrafficClass         uint8
	PKey                 uint16
	// PeerSRQ says that the peer takes receives from a shared queue.
	PeerSRQ bool
}

// Request is what a REQ or SIDR_REQ says about itself.
type Request struct {
	Service ServiceID
	// Src is the peer's address and port, Dst ours, of IP service ids; not valid
	// with others.
	Src, Dst netip.AddrPort
	// PKey is what the peer means to use.
	PKey uint16

	// The rest is of a REQ only.

	CAGUID    uint64
	QPN       roce.QPN // the peer's
	Transport Transport
	MTU       roce.PathMTU
	// MaxRead is how many READs and atomics the peer can serve, MaxDestRead how
	// many it wants in flight: the limits of [AcceptParams].
	MaxRead, MaxDestRead uint8
	RetryCount, RNRRetry uint8
	SRQ                  bool
	FlowLabel            uint32
	TrafficClass         uint8
}
