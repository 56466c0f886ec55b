package layers

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/google/gopacket"
	glayers "github.com/google/gopacket/layers"

	"github.com/gohixl/hixl/roce"
)

// Verdict is what is known about an ICRC.
type Verdict uint8

// The verdicts.
const (
	Unchecked Verdict = iota // the IP and UDP layers are not known
	Good
	Bad
)

// String returns "unchecked", "good" or "bad".
func (v Verdict) String() string {
	switch v {
	case Good:
		return "good"
	case Bad:
		return "bad"
	case Unchecked:
	}
	return "unchecked"
}

// ICRC is the end of a packet: its pad bytes and the invariant CRC.
type ICRC struct {
	glayers.BaseLayer
	Pad     []byte // before the CRC, at most 3 bytes
	Value   uint32 // as found
	Want    uint32 // as expected, unless Unchecked
	Verdict Verdict

	bth     *BTH // of the same packet, in a Decoder
	decoder *Decoder
}

// LayerType returns [LayerTypeICRC].
func (h *ICRC) LayerType() gopacket.LayerType { return LayerTypeICRC }

// CanDecode returns [LayerTypeICRC].
func (h *ICRC) CanDecode() gopacket.LayerClass { return LayerTypeICRC }

// NextLayerType returns Payload, or nothing when the packet has none.
func (h *ICRC) NextLayerType() gopacket.LayerType {
	if len(h.BaseLayer.Payload) == 0 {
		return gopacket.LayerTypeZero
	}
	return gopacket.LayerTypePayload
}

// DecodeFromBytes takes the payload of the header before it: the packet's
// payload, which becomes the layer's, pad and CRC. Within a [Decoder] that knows
// the packet's IP and UDP layers it gives a verdict.
func (h *ICRC) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	pad := 0
	if h.bth != nil {
		pad = int(h.bth.Pad)
	}
	n := len(data) - roce.ICRCLen - pad
	if n < 0 {
		df.SetTruncated()
		return fmt.Errorf("pad and ICRC have %d bytes, got %d: %w", pad+roce.ICRCLen, len(data), ErrTruncated)
	}
	h.set(data[n:])
	h.BaseLayer.Payload = data[:n]
	if h.decoder != nil {
		h.check(h.decoder.headers())
	}
	return nil
}

// set takes over pad and CRC.
func (h *ICRC) set(trailer []byte) {
	pad := len(trailer) - roce.ICRCLen
	h.BaseLayer = glayers.BaseLayer{Contents: trailer}
	h.Pad, h.Value = trailer[:pad], binary.LittleEndian.Uint32(trailer[pad:])
	h.Want, h.Verdict = 0, Unchecked
}

// check gives the verdict for the packet that hdr goes with.
func (h *ICRC) check(hdr roce.Headers, packet []byte, ok bool) {
	if !ok {
		return
	}
	h.Want, h.Verdict = hdr.ICRC(packet[:len(packet)-roce.ICRCLen]), Bad
	if h.Want == h.Value {
		h.Verdict = Good
	}
}

// SerializeTo appends pad and CRC behind what is there, so the layer may come
// before or after the payload. The BTH computes the CRC.
func (h *ICRC) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	w, err := b.AppendBytes(len(h.Pad) + roce.ICRCLen)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(w[copy(w, h.Pad):], h.Value)
	return nil
}

// headers returns what the ICRC covers of an IP and a UDP layer.
func headers(ip gopacket.NetworkLayer, udp *glayers.UDP) (h roce.Headers, ok bool) {
	if udp == nil {
		return h, false
	}
	h.SrcPort, h.DstPort = uint16(udp.SrcPort), uint16(udp.DstPort)
	switch ip := ip.(type) {
	case *glayers.IPv4:
		if ip == nil || len(ip.Options) > 0 || ip.IHL > 5 {
			return h, false
		}
		h.ID, h.Frag = ip.Id, uint16(ip.Flags)<<13|ip.FragOffset
		return addresses(h, ip.SrcIP, ip.DstIP)
	case *glayers.IPv6:
		if ip == nil {
			return h, false
		}
		return addresses(h, ip.SrcIP, ip.DstIP)
	}
	return h, false
}

func addresses(h roce.Headers, src, dst []byte) (roce.Headers, bool) {
	var okSrc, okDst bool
	h.Src, okSrc = netip.AddrFromSlice(src)
	h.Dst, okDst = netip.AddrFromSlice(dst)
	return h, okSrc && okDst
}
