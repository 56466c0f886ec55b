package layers

import (
	"fmt"

	"github.com/google/gopacket"
	glayers "github.com/google/gopacket/layers"

	"github.com/gohixl/hixl/roce"
)

// BTH is the base transport header. Its layer payload is the rest of the
// packet, pad and ICRC included.
type BTH struct {
	glayers.BaseLayer
	Opcode roce.Opcode
	SE     bool // solicited event
	Mig    bool // migrated
	Pad    uint8
	PKey   uint16
	FECN   bool
	BECN   bool
	Resv6  uint8 // low six bits of byte 4
	DestQP roce.QPN
	AckReq bool
	Resv7  uint8 // low seven bits of byte 8
	PSN    roce.PSN

	ip  gopacket.NetworkLayer // for the ICRC, when serializing
	udp *glayers.UDP
}

// LayerType returns [LayerTypeBTH].
func (h *BTH) LayerType() gopacket.LayerType { return LayerTypeBTH }

// CanDecode returns [LayerTypeBTH].
func (h *BTH) CanDecode() gopacket.LayerClass { return LayerTypeBTH }

// NextLayerType returns the type of the first extension header, or of the ICRC.
func (h *BTH) NextLayerType() gopacket.LayerType { return h.next(0) }

// next returns the layer type behind header after, or behind the BTH for 0. The
// ICRC, which knows where the payload ends, comes before it.
func (h *BTH) next(after roce.Hdr) gopacket.LayerType {
	rest := h.Opcode.Headers()
	if after != 0 {
		rest &^= after | (after - 1)
	}
	return extType(lowest(rest))
}

// DecodeFromBytes decodes a UDP payload, and fails for one that is no packet as
// [roce.Packet.Decode] does.
func (h *BTH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	var p roce.Packet
	if err := p.Decode(data); err != nil {
		if len(data) < roce.BTHLen+p.Opcode.HeaderLen() {
			df.SetTruncated()
		}
		return err
	}
	h.set(&p, data)
	return nil
}

func (h *BTH) set(p *roce.Packet, data []byte) {
	h.BaseLayer = glayers.BaseLayer{Contents: data[:roce.BTHLen], Payload: data[roce.BTHLen:]}
	h.Opcode, h.SE, h.Mig, h.Pad, h.PKey = p.Opcode, p.SE, p.Mig, p.Pad, p.PKey
	h.FECN, h.BECN, h.Resv6, h.DestQP = p.FECN, p.BECN, p.Resv6, p.DestQP
	h.AckReq, h.Resv7, h.PSN = p.AckReq, p.Resv7, p.PSN
}

// SetNetworkLayerForICRC tells which IP and UDP layers the packet will have in
// front, so that serializing it with ComputeChecksums can compute the ICRC. ip
// is an IPv4 or IPv6 layer.
func (h *BTH) SetNetworkLayerForICRC(ip gopacket.NetworkLayer, udp *glayers.UDP) error {
	if _, ok := headers(ip, udp); !ok {
		return fmt.Errorf("the ICRC covers an IPv4 header of 20 bytes or an IPv6 header, and a UDP header; got %T and %v", ip, udp)
	}
	h.ip, h.udp = ip, udp
	return nil
}

// SerializeTo prepends the header. With FixLengths it pads what is there, the
// extension headers, payload and an ICRC layer, to a multiple of four bytes and
// sets Pad. With ComputeChecksums it computes the ICRC in place, for which it
// needs [BTH.SetNetworkLayerForICRC] and an [ICRC] layer.
func (h *BTH) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	hasICRC := serialized(b, LayerTypeICRC)
	if opts.FixLengths {
		if err := h.fixPad(b, hasICRC); err != nil {
			return err
		}
	}
	w, err := b.PrependBytes(roce.BTHLen)
	if err != nil {
		return err
	}
	p := roce.Packet{
		Opcode: h.Opcode, SE: h.SE, Mig: h.Mig, Pad: h.Pad, PKey: h.PKey,
		FECN: h.FECN, BECN: h.BECN, Resv6: h.Resv6, DestQP: h.DestQP,
		AckReq: h.AckReq, Resv7: h.Resv7, PSN: h.PSN,
	}
	var buf [roce.MaxHeaderLen]byte
	copy(w, p.AppendHeader(buf[:0]))
	if opts.ComputeChecksums {
		return h.seal(b, hasICRC)
	}
	return nil
}

func (h *BTH) seal(b gopacket.SerializeBuffer, hasICRC bool) error {
	hdr, ok := headers(h.ip, h.udp)
	switch {
	case !ok:
		return fmt.Errorf("the ICRC of %v cannot be computed: call SetNetworkLayerForICRC before serializing", h.Opcode)
	case !hasICRC:
		return fmt.Errorf("the ICRC of %v has no place: serialize an ICRC layer behind the payload", h.Opcode)
	}
	hdr.Seal(b.Bytes())
	return nil
}

// fixPad inserts zero bytes before the ICRC so that the packet ends on a
// multiple of four.
func (h *BTH) fixPad(b gopacket.SerializeBuffer, hasICRC bool) error {
	n := len(b.Bytes())
	missing := -n & 3
	if missing == 0 {
		return nil
	}
	w, err := b.AppendBytes(missing)
	if err != nil {
		return err
	}
	clear(w)
	if all := b.Bytes(); hasICRC && n >= roce.ICRCLen {
		copy(all[len(all)-roce.ICRCLen:], all[n-roce.ICRCLen:n])
		clear(all[n-roce.ICRCLen : len(all)-roce.ICRCLen])
	}
	h.Pad = (h.Pad + uint8(missing)) & 3
	return nil
}

func serialized(b gopacket.SerializeBuffer, t gopacket.LayerType) bool {
	for _, have := range b.Layers() {
		if have == t {
			return true
		}
	}
	return false
}
