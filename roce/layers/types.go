package layers

import (
	"github.com/google/gopacket"
	glayers "github.com/google/gopacket/layers"

	"github.com/gohixl/hixl/roce"
)

// firstType is the number of the first layer type, from the range that gopacket
// leaves to applications.
const firstType = 1791

// The layer types.
var (
	LayerTypeBTH       = register(0, "BTH", decodeBTH)
	LayerTypeDETH      = register(1, "DETH", decodeAlone[DETH])
	LayerTypeXRCETH    = register(2, "XRCETH", decodeAlone[XRCETH])
	LayerTypeFETH      = register(3, "FETH", decodeAlone[FETH])
	LayerTypeRETH      = register(4, "RETH", decodeAlone[RETH])
	LayerTypeAtomicETH = register(5, "AtomicETH", decodeAlone[AtomicETH])
	LayerTypeAETH      = register(6, "AETH", decodeAlone[AETH])
	LayerTypeAtomicAck = register(7, "AtomicAckETH", decodeAlone[AtomicAckETH])
	LayerTypeImmDt     = register(8, "ImmDt", decodeAlone[ImmDt])
	LayerTypeIETH      = register(9, "IETH", decodeAlone[IETH])
	LayerTypeCNP       = register(10, "CNP", decodeAlone[CNP])
	LayerTypeICRC      = register(11, "ICRC", decodeAlone[ICRC])
)

func init() { glayers.RegisterUDPPortLayerType(roce.Port, LayerTypeBTH) }

func register(n int, name string, decode gopacket.DecodeFunc) gopacket.LayerType {
	return gopacket.RegisterLayerType(firstType+n, gopacket.LayerTypeMetadata{Name: name, Decoder: decode})
}

// decodingLayer is what all our layers are.
type decodingLayer interface {
	gopacket.Layer
	gopacket.DecodingLayer
	gopacket.SerializableLayer
}

// decodeAlone decodes bytes that begin with a layer that has no BTH before it
// to say what follows: the rest is payload.
func decodeAlone[T any, P interface {
	*T
	decodingLayer
}](data []byte, b gopacket.PacketBuilder) error {
	l := P(new(T))
	if err := l.DecodeFromBytes(data, b); err != nil {
		return err
	}
	b.AddLayer(l)
	if len(l.LayerPayload()) == 0 {
		return nil
	}
	return b.NextDecoder(gopacket.LayerTypePayload)
}
