package layers

import (
	"fmt"

	"github.com/google/gopacket"
	glayers "github.com/google/gopacket/layers"

	"github.com/gohixl/hixl/roce"
)

// decodeBTH adds the layers of a whole RoCEv2 packet, in wire order.
func decodeBTH(data []byte, b gopacket.PacketBuilder) error {
	ip, udp := below(b)
	whole, cut := data, false
	if udp != nil && len(data) < int(udp.Length)-8 { // not all of it was captured
		whole, cut = append(data[:len(data):len(data)], make([]byte, int(udp.Length)-8-len(data))...), true
		b.SetTruncated()
	}
	var p roce.Packet
	if err := p.Decode(whole); err != nil {
		return err
	}
	if len(data) < p.HeaderLen() {
		return fmt.Errorf("%v has %d bytes of headers, got %d: %w", p.Opcode, p.HeaderLen(), len(data), ErrTruncated)
	}
	bth := new(BTH)
	bth.set(&p, data)
	b.AddLayer(bth)
	rest, err := addExtensions(data[roce.BTHLen:], p.Opcode.Headers(), b)
	if err != nil {
		return err
	}
	n := min(len(p.Payload), len(rest))
	if n > 0 {
		payload := gopacket.Payload(rest[:n])
		b.AddLayer(&payload)
		b.SetApplicationLayer(&payload)
	}
	if cut {
		return nil
	}
	icrc := new(ICRC)
	icrc.set(rest[n:])
	hdr, ok := headers(ip, udp)
	icrc.check(hdr, data, ok)
	b.AddLayer(icrc)
	return nil
}

// addExtensions adds a layer for each header and returns what is behind them.
func addExtensions(data []byte, has roce.Hdr, b gopacket.PacketBuilder) ([]byte, error) {
	for has != 0 {
		h := lowest(has)
		l := newExt(h)
		if err := l.DecodeFromBytes(data, b); err != nil {
			return nil, err
		}
		b.AddLayer(l)
		data, has = l.LayerPayload(), has&^h
	}
	return data, nil
}

// below returns the innermost UDP layer that was decoded so far and the IP layer
// under it, if the builder tells.
func below(b gopacket.PacketBuilder) (gopacket.NetworkLayer, *glayers.UDP) {
	p, ok := b.(gopacket.Packet)
	if !ok {
		return nil, nil
	}
	all := p.Layers() // those before this one: nothing is pending while we decode
	if len(all) == 0 {
		return nil, nil
	}
	udp, ok := all[len(all)-1].(*glayers.UDP)
	if !ok || len(all) < 2 {
		return nil, udp
	}
	ip, _ := all[len(all)-2].(gopacket.NetworkLayer)
	return ip, udp
}
