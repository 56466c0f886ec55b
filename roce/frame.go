package roce

import "errors"

// LinkType says what a frame begins with, as capture files number it.
type LinkType uint16

// The link types that are understood. Several numbers mean raw IP.
const (
	LinkNull     LinkType = 0   // BSD loopback: 4 bytes of address family
	LinkEthernet LinkType = 1   //
	LinkRawBSD   LinkType = 12  // raw IP
	LinkRawOpen  LinkType = 14  // raw IP
	LinkRaw      LinkType = 101 // raw IP
	LinkLoop     LinkType = 108 // OpenBSD loopback
	LinkSLL      LinkType = 113 // Linux cooked, 16 bytes
	LinkIPv4     LinkType = 228 // raw IP
	LinkIPv6     LinkType = 229 // raw IP
	LinkSLL2     LinkType = 276 // Linux cooked version 2, 20 bytes
)

const (
	etherIPv4   = 0x0800
	etherIPv6   = 0x86DD
	etherRoCEv1 = 0x8915
	etherVLAN   = 0x8100 // 802.1Q
	etherQinQ   = 0x88A8 // 802.1ad
	etherQinQ1  = 0x9100 // older double tagging
)

// Frame is what lies around a RoCEv2 packet. IP and Payload alias the frame.
type Frame struct {
	Headers            // of the packet, ready to check its ICRC
	TOS       uint8    // IPv4 TOS or IPv6 traffic class; the low two bits are ECN
	TTL       uint8    // or hop limit
	Tags      uint8    // VLAN tags
	VLAN      uint16   // the innermost tag's priority and VLAN id, with Tags > 0
	FlowLabel uint32   // IPv6
	UDPLen    uint16   // the length field
	Link      LinkType // as given
	IP        []byte   // from the IP header to the end of the frame, link padding included
	Payload   []byte   // of UDP, for [Packet.Decode]
}

// DecodeFrame fills f from a link layer frame that carries a RoCEv2 packet. VLAN
// tags are skipped, any number of them; bytes after the UDP length, such as
// Ethernet padding, are left out (§1.1). Anything else is a *[FrameError] with
// [ErrNotRoCE], [ErrRoCEv1], [ErrFragment], [ErrIPOptions], [ErrVersion],
// [ErrLength], [ErrTruncated] or [ErrLinkType]; f then holds what was found so
// far, so that f.DstPort == [Port] tells a bad RoCEv2 packet from other traffic,
// and with ErrTruncated f.Payload is what there is. It does not allocate.
func DecodeFrame(link LinkType, frame []byte, f *Frame) error {
	*f = Frame{Link: link}
	ip, ether, err := f.skipLink(frame)
	if err != nil {
		return err
	}
	f.IP = ip
	switch ether {
	case etherIPv4:
		return f.decode4(ip)
	case etherIPv6:
		return f.decode6(ip)
	case etherRoCEv1:
		return errRoCEv1
	}
	return errNotIP
}

// skipLink returns what follows the link header and its EtherType.
func (f *Frame) skipLink(b []byte) (rest []byte, ether uint16, err error) {
	at, skip := 0, 0 // where the EtherType stands, and the header's length
	switch f.Link {
	case LinkEthernet:
		at, skip = 12, 14
	case LinkSLL:
		at, skip = 14, 16
	case LinkSLL2:
		at, skip = 0, 20
	case LinkNull, LinkLoop:
		// The address family differs by system and byte order; the IP version does not.
		if len(b) < 4 {
			return nil, 0, errLinkShort
		}
		return rawIP(b[4:])
	case LinkRaw, LinkRawBSD, LinkRawOpen, LinkIPv4, LinkIPv6:
		return rawIP(b)
	default:
		return nil, 0, errLinkType
	}
	if len(b) < skip {
		return nil, 0, errLinkShort
	}
	ether, b = be.Uint16(b[at:]), b[skip:]
	for ether == etherVLAN || ether == etherQinQ || ether == etherQinQ1 {
		if len(b) < 4 {
			return nil, 0, errLinkShort
		}
		if f.Tags < 255 {
			f.Tags++
		}
		f.VLAN, ether, b = be.Uint16(b), be.Uint16(b[2:]), b[4:]
	}
	return b, ether, nil
}

func rawIP(b []byte) ([]byte, uint16, error) {
	if len(b) == 0 {
		return nil, 0, errIPShort
	}
	switch b[0] >> 4 {
	case 4:
		return b, etherIPv4, nil
	case 6:
		return b, etherIPv6, nil
	}
	return nil, 0, errNotIP
}

func (f *Frame) decode4(b []byte) error {
	var h IPv4
	payload, err := h.Decode(b)
	f.Src, f.Dst, f.ID, f.Frag, f.TOS, f.TTL = h.Src, h.Dst, h.ID, h.Frag, h.TOS, h.TTL
	switch {
	case errors.Is(err, errIPv4Options):
		if n := int(b[0]&0xF) * 4; h.Protocol == protoUDP && len(b) >= n && h.Frag&fragOffset == 0 {
			f.peekPorts(b[n:])
		}
	case err != nil && !errors.Is(err, errIPCut):
		return err
	}
	switch {
	case h.Protocol != protoUDP:
		return errNotUDP
	case h.IsFragment():
		if h.Frag&fragOffset == 0 {
			f.peekPorts(payload)
		}
		return errFragment
	case errors.Is(err, errIPv4Options):
		return err
	}
	return f.decodeUDP(payload, err)
}

func (f *Frame) decode6(b []byte) error {
	var h IPv6
	payload, err := h.Decode(b)
	f.Src, f.Dst, f.TOS, f.TTL, f.FlowLabel = h.Src, h.Dst, h.TrafficClass, h.HopLimit, h.FlowLabel
	if err != nil && !errors.Is(err, errIPCut) {
		return err
	}
	if h.NextHeader == protoUDP {
		return f.decodeUDP(payload, err)
	}
	udp, fragment := skipExtensions(h.NextHeader, payload)
	f.peekPorts(udp)
	switch {
	case fragment:
		return errFragment
	case udp != nil:
		return errIPv6Extended
	}
	return errNotUDP
}

// decodeUDP takes the IP payload; cut is the error of the IP header, if its
// packet is not all there.
func (f *Frame) decodeUDP(b []byte, cut error) error {
	var h UDP
	payload, err := h.Decode(b)
	f.SrcPort, f.DstPort, f.UDPLen, f.Payload = h.SrcPort, h.DstPort, h.Len, payload
	switch {
	case errors.Is(err, errUDPShort):
		return err
	case h.DstPort != Port:
		return errNotPort
	case err != nil:
		return err
	}
	return cut
}

// peekPorts reads the ports of a UDP packet that is refused for another reason.
func (f *Frame) peekPorts(b []byte) {
	if len(b) >= udpLen {
		f.SrcPort, f.DstPort = be.Uint16(b), be.Uint16(b[2:])
	}
}
