package roce

import "errors"

// What frames and IP packets that carry no RoCEv2 packet for us unwrap to,
// beside [ErrTruncated], [ErrVersion] and [ErrLength].
var (
	// ErrNotRoCE: other traffic.
	ErrNotRoCE = errors.New("roce: not RoCEv2")
	// ErrRoCEv1: a frame of RoCEv1 (EtherType 0x8915), which is another encapsulation.
	ErrRoCEv1 = errors.New("roce: RoCEv1, not RoCEv2")
	// ErrFragment: an IP fragment. RoCEv2 packets are never fragmented.
	ErrFragment = errors.New("roce: IP fragment")
	// ErrIPOptions: IPv4 options or IPv6 extension headers, for which the ICRC is not defined.
	ErrIPOptions = errors.New("roce: IP options")
	// ErrLinkType: a link layer that is not known here.
	ErrLinkType = errors.New("roce: unknown link type")
)

// FrameError says why a frame, or an IP or UDP header in it, was not taken. It
// unwraps to one of the sentinels. Values are made once and shared: refusing a
// frame allocates nothing.
type FrameError struct {
	Reason error  // the sentinel
	Detail string // what was wrong, in words
}

func (e *FrameError) Error() string { return "roce: " + e.Detail }

// Unwrap returns the sentinel.
func (e *FrameError) Unwrap() error { return e.Reason }

var (
	errLinkShort    = &FrameError{ErrTruncated, "link header is cut off"}
	errLinkType     = &FrameError{ErrLinkType, "link type is none of null, Ethernet, raw IP, Linux cooked v1 and v2"}
	errRoCEv1       = &FrameError{ErrRoCEv1, "RoCEv1 frame (EtherType 0x8915); only RoCEv2 is decoded"}
	errNotIP        = &FrameError{ErrNotRoCE, "frame carries no IP packet"}
	errNotUDP       = &FrameError{ErrNotRoCE, "IP packet carries no UDP"}
	errNotPort      = &FrameError{ErrNotRoCE, "UDP destination port is not 4791"}
	errIPVersion    = &FrameError{ErrVersion, "IP version is neither 4 nor 6"}
	errIPShort      = &FrameError{ErrTruncated, "IP header is cut off"}
	errIPCut        = &FrameError{ErrTruncated, "IP length field says more bytes than there are"}
	errIPLength     = &FrameError{ErrLength, "IPv4 length fields contradict each other"}
	errUDPShort     = &FrameError{ErrTruncated, "UDP header is cut off"}
	errUDPCut       = &FrameError{ErrTruncated, "UDP length field says more bytes than there are"}
	errUDPLength    = &FrameError{ErrLength, "UDP length field does not agree with the IP length"}
	errFragment     = &FrameError{ErrFragment, "IP fragment; RoCEv2 packets come whole"}
	errIPv4Options  = &FrameError{ErrIPOptions, "IPv4 options; a RoCEv2 header has exactly 20 bytes"}
	errIPv6Extended = &FrameError{ErrIPOptions, "IPv6 extension headers; UDP must follow the IPv6 header"}
)
