package layers

import (
	"github.com/google/gopacket"

	"github.com/gohixl/hixl/roce"
)

// DETH is the datagram header.
type DETH struct {
	ext
	roce.DETH
}

// LayerType returns [LayerTypeDETH].
func (h *DETH) LayerType() gopacket.LayerType { return LayerTypeDETH }

// CanDecode returns [LayerTypeDETH].
func (h *DETH) CanDecode() gopacket.LayerClass { return LayerTypeDETH }

// NextLayerType returns what follows by the opcode within a [Decoder], and
// Payload elsewhere.
func (h *DETH) NextLayerType() gopacket.LayerType { return h.after(roce.HasDETH) }

// DecodeFromBytes decodes the header; what is behind it becomes the layer's payload.
func (h *DETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := h.split(data, roce.DETHLen, LayerTypeDETH, df); err != nil {
		return err
	}
	h.Get(data)
	return nil
}

// SerializeTo prepends the header.
func (h *DETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	w, err := b.PrependBytes(roce.DETHLen)
	if err != nil {
		return err
	}
	h.Put(w)
	return nil
}

// FETH is the FLUSH header.
type FETH struct {
	ext
	roce.FETH
}

// LayerType returns [LayerTypeFETH].
func (h *FETH) LayerType() gopacket.LayerType { return LayerTypeFETH }

// CanDecode returns [LayerTypeFETH].
func (h *FETH) CanDecode() gopacket.LayerClass { return LayerTypeFETH }

// NextLayerType returns what follows by the opcode within a [Decoder], and
// Payload elsewhere.
func (h *FETH) NextLayerType() gopacket.LayerType { return h.after(roce.HasFETH) }

// DecodeFromBytes decodes the header; what is behind it becomes the layer's payload.
func (h *FETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := h.split(data, roce.FETHLen, LayerTypeFETH, df); err != nil {
		return err
	}
	h.Get(data)
	return nil
}

// SerializeTo prepends the header.
func (h *FETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	w, err := b.PrependBytes(roce.FETHLen)
	if err != nil {
		return err
	}
	h.Put(w)
	return nil
}

// RETH is the RDMA header.
type RETH struct {
	ext
	roce.RETH
}

// LayerType returns [LayerTypeRETH].
func (h *RETH) LayerType() gopacket.LayerType { return LayerTypeRETH }

// CanDecode returns [LayerTypeRETH].
func (h *RETH) CanDecode() gopacket.LayerClass { return LayerTypeRETH }

// NextLayerType returns what follows by the opcode within a [Decoder], and
// Payload elsewhere.
func (h *RETH) NextLayerType() gopacket.LayerType { return h.after(roce.HasRETH) }

// DecodeFromBytes decodes the header; what is behind it becomes the layer's payload.
func (h *RETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := h.split(data, roce.RETHLen, LayerTypeRETH, df); err != nil {
		return err
	}
	h.Get(data)
	return nil
}

// SerializeTo prepends the header.
func (h *RETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	w, err := b.PrependBytes(roce.RETHLen)
	if err != nil {
		return err
	}
	h.Put(w)
	return nil
}

// AtomicETH is the header of CMP_SWAP and FETCH_ADD.
type AtomicETH struct {
	ext
	roce.AtomicETH
}

// LayerType returns [LayerTypeAtomicETH].
func (h *AtomicETH) LayerType() gopacket.LayerType { return LayerTypeAtomicETH }

// CanDecode returns [LayerTypeAtomicETH].
func (h *AtomicETH) CanDecode() gopacket.LayerClass { return LayerTypeAtomicETH }

// NextLayerType returns what follows by the opcode within a [Decoder], and
// Payload elsewhere.
func (h *AtomicETH) NextLayerType() gopacket.LayerType { return h.after(roce.HasAtomicETH) }

// DecodeFromBytes decodes the header; what is behind it becomes the layer's payload.
func (h *AtomicETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := h.split(data, roce.AtomicETHLen, LayerTypeAtomicETH, df); err != nil {
		return err
	}
	h.Get(data)
	return nil
}

// SerializeTo prepends the header.
func (h *AtomicETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	w, err := b.PrependBytes(roce.AtomicETHLen)
	if err != nil {
		return err
	}
	h.Put(w)
	return nil
}

// AETH is the acknowledgement header.
type AETH struct {
	ext
	roce.AETH
}

// LayerType returns [LayerTypeAETH].
func (h *AETH) LayerType() gopacket.LayerType { return LayerTypeAETH }

// CanDecode returns [LayerTypeAETH].
func (h *AETH) CanDecode() gopacket.LayerClass { return LayerTypeAETH }

// NextLayerType returns what follows by the opcode within a [Decoder], and
// Payload elsewhere.
func (h *AETH) NextLayerType() gopacket.LayerType { return h.after(roce.HasAETH) }

// DecodeFromBytes decodes the header; what is behind it becomes the layer's payload.
func (h *AETH) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := h.split(data, roce.AETHLen, LayerTypeAETH, df); err != nil {
		return err
	}
	h.Get(data)
	return nil
}

// SerializeTo prepends the header.
func (h *AETH) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	w, err := b.PrependBytes(roce.AETHLen)
	if err != nil {
		return err
	}
	h.Put(w)
	return nil
}
