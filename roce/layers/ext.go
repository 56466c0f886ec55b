package layers

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/google/gopacket"
	glayers "github.com/google/gopacket/layers"

	"github.com/gohixl/hixl/roce"
)

// ErrTruncated is what the error of a layer with too few bytes unwraps to.
var ErrTruncated = errors.New("truncated")

// ext is what extension header layers have in common.
type ext struct {
	glayers.BaseLayer
	bth *BTH // of the same packet, in a Decoder; tells what follows
}

// split takes the first n bytes as the layer's own.
func (e *ext) split(data []byte, n int, t gopacket.LayerType, df gopacket.DecodeFeedback) error {
	if len(data) < n {
		df.SetTruncated()
		return fmt.Errorf("%v has %d bytes, got %d: %w", t, n, len(data), ErrTruncated)
	}
	e.Contents, e.Payload = data[:n], data[n:]
	return nil
}

// after returns the layer type behind header h.
func (e *ext) after(h roce.Hdr) gopacket.LayerType {
	if e.bth == nil {
		return gopacket.LayerTypePayload
	}
	return e.bth.next(h)
}

// extType returns the layer type of one extension header, and that of the ICRC
// for none.
func extType(h roce.Hdr) gopacket.LayerType {
	switch h {
	case roce.HasDETH:
		return LayerTypeDETH
	case roce.HasXRCETH:
		return LayerTypeXRCETH
	case roce.HasFETH:
		return LayerTypeFETH
	case roce.HasRETH:
		return LayerTypeRETH
	case roce.HasAtomicETH:
		return LayerTypeAtomicETH
	case roce.HasAETH:
		return LayerTypeAETH
	case roce.HasAtomicAck:
		return LayerTypeAtomicAck
	case roce.HasImm:
		return LayerTypeImmDt
	case roce.HasIETH:
		return LayerTypeIETH
	case roce.HasCNP:
		return LayerTypeCNP
	}
	return LayerTypeICRC
}

// lowest returns the first header of a set, 0 for none.
func lowest(h roce.Hdr) roce.Hdr {
	if h == 0 {
		return 0
	}
	return 1 << bits.TrailingZeros16(uint16(h))
}

// newExt returns a new layer for a header.
func newExt(h roce.Hdr) decodingLayer {
	switch h {
	case roce.HasDETH:
		return new(DETH)
	case roce.HasXRCETH:
		return new(XRCETH)
	case roce.HasFETH:
		return new(FETH)
	case roce.HasRETH:
		return new(RETH)
	case roce.HasAtomicETH:
		return new(AtomicETH)
	case roce.HasAETH:
		return new(AETH)
	case roce.HasAtomicAck:
		return new(AtomicAckETH)
	case roce.HasImm:
		return new(ImmDt)
	case roce.HasIETH:
		return new(IETH)
	default:
		return new(CNP)
	}
}
