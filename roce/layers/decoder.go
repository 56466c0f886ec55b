package layers

import (
	"github.com/google/gopacket"
	glayers "github.com/google/gopacket/layers"

	"github.com/gohixl/hixl/roce"
)

// Decoder holds one layer of each type for gopacket's DecodingLayerParser. The
// layers know each other, so that each names the one that follows by the
// packet's opcode: BTH, extension headers, ICRC, Payload. After a packet was
// decoded, the fields of those layers that the parser reports are valid. Make
// one with [NewDecoder]; it belongs to one goroutine.
type Decoder struct {
	BTH       BTH
	DETH      DETH
	XRCETH    XRCETH
	FETH      FETH
	RETH      RETH
	AtomicETH AtomicETH
	AETH      AETH
	AtomicAck AtomicAckETH
	ImmDt     ImmDt
	IETH      IETH
	CNP       CNP
	ICRC      ICRC

	ip4 *glayers.IPv4
	ip6 *glayers.IPv6
	udp *glayers.UDP
}

// NewDecoder returns a decoder. The IP and UDP layers are those of the same
// parser, from which ICRCs are checked; any may be nil, and without them no
// verdict is given.
func NewDecoder(ip4 *glayers.IPv4, ip6 *glayers.IPv6, udp *glayers.UDP) *Decoder {
	d := &Decoder{ip4: ip4, ip6: ip6, udp: udp}
	for _, e := range []*ext{
		&d.DETH.ext, &d.XRCETH.ext, &d.FETH.ext, &d.RETH.ext, &d.AtomicETH.ext,
		&d.AETH.ext, &d.AtomicAck.ext, &d.ImmDt.ext, &d.IETH.ext, &d.CNP.ext,
	} {
		e.bth = &d.BTH
	}
	d.ICRC.bth, d.ICRC.decoder = &d.BTH, d
	return d
}

// Layers returns the layers, to add to a parser.
func (d *Decoder) Layers() []gopacket.DecodingLayer {
	return []gopacket.DecodingLayer{
		&d.BTH, &d.DETH, &d.XRCETH, &d.FETH, &d.RETH, &d.AtomicETH,
		&d.AETH, &d.AtomicAck, &d.ImmDt, &d.IETH, &d.CNP, &d.ICRC,
	}
}

// headers returns what the ICRC covers of the current packet, and the packet.
func (d *Decoder) headers() (hdr roce.Headers, packet []byte, ok bool) {
	if d.udp == nil || !same(d.udp.Payload, d.BTH.Contents) {
		return hdr, nil, false
	}
	// Of the two IP layers one may be left over from an earlier packet.
	switch {
	case d.ip4 != nil && same(d.ip4.Payload, d.udp.Contents):
		hdr, ok = headers(d.ip4, d.udp)
	case d.ip6 != nil && same(d.ip6.Payload, d.udp.Contents):
		hdr, ok = headers(d.ip6, d.udp)
	}
	return hdr, d.udp.Payload, ok
}

// same reports whether two slices begin at the same byte.
func same(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }
