// Package layers makes gopacket programs see RoCEv2: importing it registers a
// layer type for every RoCEv2 header and decodes UDP port 4791 with them, in
// wire order: BTH, extension headers, Payload, ICRC. The ICRC layer carries a
// verdict when the packet's IP and UDP layers are known.
//
//	import _ "github.com/gohixl/hixl/roce/layers"
//
// Every layer type decodes and serializes. For gopacket's
// DecodingLayerParser use the layers of a [Decoder], which know each other and
// allocate nothing per packet.
//
// It owns no parsing of its own, that is package roce's, and may be imported by
// any program that shows or builds packets; like gopacket's layers, a layer
// belongs to one goroutine.
package layers
