package xdp

import (
	"net/netip"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
)

// parser judges frames that the program took from the link. What it lets through
// has consistent lengths and, over IPv4, a right header checksum: the kernel's own
// checks, which the frame never saw.
type parser struct {
	local  netip.Addr
	verify bool // UDP checksums
	trains bool // a frame may be several packets that nobody cut yet
	f      roce.Frame
}

// parse fills rx from frame, which begins with the Ethernet header, and reports
// whether it is a packet for us. rx.Data aliases frame.
func (p *parser) parse(frame []byte, mac *[6]byte, rx *transport.Rx) bool {
	if len(frame) < etherLen || [6]byte(frame) != *mac {
		return false
	}
	f := &p.f
	if roce.DecodeFrame(roce.LinkEthernet, frame, f) != nil || f.Dst != p.local {
		return false
	}
	is4 := f.Src.Is4()
	if is4 && foldSum(sumWords(f.IP[:ipv4Len])) != 0xFFFF {
		return false
	}
	sum := p.checksum(is4)
	if p.verify && sum == sumWrong {
		return false
	}
	rx.Data, rx.Seg = f.Payload, 0
	if p.trains && sum == sumPartial {
		rx.Seg = cutTrain(f)
	}
	rx.Src, rx.Dst, rx.SrcPort, rx.TOS, rx.TTL = f.Src, f.Dst, f.SrcPort, f.TOS, f.TTL
	rx.HaveID, rx.ID, rx.Frag = is4, f.ID, f.Frag
	return true
}

// checksumKind is what a UDP checksum turned out to be.
type checksumKind uint8

const (
	sumNone    checksumKind = iota // 0
	sumPartial                     // of the pseudo-header: a local sender left the rest to a device
	sumRight
	sumWrong
	sumUnknown // not computed
)

func (p *parser) checksum(is4 bool) checksumKind {
	f := &p.f
	at, addrs := ipv6Len, 8
	if is4 {
		at, addrs = ipv4Len, 12
	}
	udp := f.IP[at : at+int(f.UDPLen)]
	have := be.Uint16(udp[6:])
	if have == 0 {
		return sumNone
	}
	if !p.verify && !p.trains {
		return sumUnknown
	}
	pseudo := sumWords(f.IP[addrs:at]) + protoUDP + uint32(f.UDPLen)
	if have == foldSum(pseudo) {
		return sumPartial
	}
	switch {
	case !p.verify:
		return sumUnknown
	case foldSum(pseudo+uint32(sumBytes(udp))) == 0xFFFF:
		return sumRight
	}
	return sumWrong
}

// Limits of the search for the packets of a train.
const (
	minTrainPacket = roce.BTHLen + roce.ICRCLen
	maxTrainTries  = 16 // ICRCs that are computed for one frame
)

// cutTrain returns the size of the packets in f.Payload, when it is a train: what
// a local sender's UDP_SEGMENT looks like where the frame reaches us before
// anybody cut it, which generic XDP lets happen on virtual links. The sizes are
// not in the frame. So a place is looked for where a second BTH can stand, and
// the ICRC before it, over the headers that the first packet would have had, is
// the proof. 0 means that there is none: the frame is one packet, or damaged.
func cutTrain(f *roce.Frame) int {
	b := f.Payload
	if len(b) < 2*minTrainPacket {
		return 0
	}
	tries := 0
	for n := minTrainPacket; n+minTrainPacket <= len(b) && n <= maxPacket; n += 4 {
		if !mayFollow(b, b[n:]) {
			continue
		}
		if f.Check(b[:n]) {
			return n
		}
		if tries++; tries == maxTrainTries {
			return 0
		}
	}
	// A last packet may be too short for a BTH of its own kind, but not shorter
	// than the smallest packet: all places were looked at.
	return 0
}

// maxPacket is the largest packet from BTH to ICRC.
const maxPacket = roce.MaxMTU + roce.MaxHeaderLen + roce.ICRCLen

// mayFollow reports whether next can be the BTH of the packet behind first in a
// train: a known opcode, version 0, the same partition.
func mayFollow(first, next []byte) bool {
	return roce.Opcode(next[0]).Known() && next[1]&0xF == 0 &&
		next[2] == first[2] && next[3] == first[3]
}
