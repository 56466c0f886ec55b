package layers

import (
	"encoding/binary"

	"github.com/google/gopacket"

	"github.com/gohixl/hixl/roce"
)

// XRCETH is the header of XRC requests.
type XRCETH struct {
	ext
	SRQN uint32 // shared receive queue number, 24 bits
	Resv uint8  // reserved byte 0
}

// LayerType returns [LayerTypeXRCETH].
func (h *XRCETH) LayerType() gopacket.LayerType { return LayerTypeXRCETH }

// CanDecode returns [LayerTypeXRCETH].
func (h *XRCETH) CanDecode() gopacket.LayerClass { return LayerTypeXRCETH }

// NextLayerType returns what follows by the opcode within a [Decoder], and
// Payload elsewhere.
func (h *XRCETH) NextLayerType() gopacket.LayerType { return h.after(roce.HasXRCETH) }

// DecodeFromBytes decodes the header; what is behind it becomes the layer's payload.
func (h *XRCETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := h.split(data, roce.XRCETHLen, LayerTypeXRCETH, df); err != nil {
		return err
	}
	v := binary.BigEndian.Uint32(data)
	h.SRQN, h.Resv = v&0xFFFFFF, uint8(v>>24)
	return nil
}

// SerializeTo prepends the header.
func (h *XRCETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	w, err := b.PrependBytes(roce.XRCETHLen)
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(w, uint32(h.Resv)<<24|h.SRQN&0xFFFFFF)
	return nil
}

// AtomicAckETH carries the value before an atomic operation.
type AtomicAckETH struct {
	ext
	Orig uint64
}

// LayerType returns [LayerTypeAtomicAck].
func (h *AtomicAckETH) LayerType() gopacket.LayerType { return LayerTypeAtomicAck }

// CanDecode returns [LayerTypeAtomicAck].
func (h *AtomicAckETH) CanDecode() gopacket.LayerClass { return LayerTypeAtomicAck }

// NextLayerType returns what follows by the opcode within a [Decoder], and
// Payload elsewhere.
func (h *AtomicAckETH) NextLayerType() gopacket.LayerType { return h.after(roce.HasAtomicAck) }

// DecodeFromBytes decodes the header; what is behind it becomes the layer's payload.
func (h *AtomicAckETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := h.split(data, roce.AtomicAckLen, LayerTypeAtomicAck, df); err != nil {
		return err
	}
	h.Orig = binary.BigEndian.Uint64(data)
	return nil
}

// SerializeTo prepends the header.
func (h *AtomicAckETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	w, err := b.PrependBytes(roce.AtomicAckLen)
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint64(w, h.Orig)
	return nil
}

// ImmDt is immediate data.
type ImmDt struct {
	ext
	Imm uint32 // its wire bytes are its big-endian form
}

// LayerType returns [LayerTypeImmDt].
func (h *ImmDt) LayerType() gopacket.LayerType { return LayerTypeImmDt }

// CanDecode returns [LayerTypeImmDt].
func (h *ImmDt) CanDecode() gopacket.LayerClass { return LayerTypeImmDt }

// NextLayerType returns what follows by the opcode within a [Decoder], and
// Payload elsewhere.
func (h *ImmDt) NextLayerType() gopacket.LayerType { return h.after(roce.HasImm) }

// DecodeFromBytes decodes the header; what is behind it becomes the layer's payload.
func (h *ImmDt) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := h.split(data, roce.ImmLen, LayerTypeImmDt, df); err != nil {
		return err
	}
	h.Imm = binary.BigEndian.Uint32(data)
	return nil
}

// SerializeTo prepends the header.
func (h *ImmDt) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	w, err := b.PrependBytes(roce.ImmLen)
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(w, h.Imm)
	return nil
}

// IETH names the rkey to invalidate.
type IETH struct {
	ext
	RKey uint32
}

// LayerType returns [LayerTypeIETH].
func (h *IETH) LayerType() gopacket.LayerType { return LayerTypeIETH }

// CanDecode returns [LayerTypeIETH].
func (h *IETH) CanDecode() gopacket.LayerClass { return LayerTypeIETH }

// NextLayerType returns what follows by the opcode within a [Decoder], and
// Payload elsewhere.
func (h *IETH) NextLayerType() gopacket.LayerType { return h.after(roce.HasIETH) }

// DecodeFromBytes decodes the header; what is behind it becomes the layer's payload.
func (h *IETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := h.split(data, roce.IETHLen, LayerTypeIETH, df); err != nil {
		return err
	}
	h.RKey = binary.BigEndian.Uint32(data)
	return nil
}

// SerializeTo prepends the header.
func (h *IETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	w, err := b.PrependBytes(roce.IETHLen)
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(w, h.RKey)
	return nil
}

// CNP is the reserved part of a congestion notification packet.
type CNP struct {
	ext
	Resv [roce.CNPLen]byte
}

// LayerType returns [LayerTypeCNP].
func (h *CNP) LayerType() gopacket.LayerType { return LayerTypeCNP }

// CanDecode returns [LayerTypeCNP].
func (h *CNP) CanDecode() gopacket.LayerClass { return LayerTypeCNP }

// NextLayerType returns what follows by the opcode within a [Decoder], and
// Payload elsewhere.
func (h *CNP) NextLayerType() gopacket.LayerType { return h.after(roce.HasCNP) }

// DecodeFromBytes decodes the header; what is behind it becomes the layer's payload.
func (h *CNP) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := h.split(data, roce.CNPLen, LayerTypeCNP, df); err != nil {
		return err
	}
	copy(h.Resv[:], data)
	return nil
}

// SerializeTo prepends the header.
func (h *CNP) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	w, err := b.PrependBytes(roce.CNPLen)
	if err != nil {
		return err
	}
	copy(w, h.Resv[:])
	return nil
}
