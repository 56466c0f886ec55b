package layers_test

import (
	"encoding/hex"
	"fmt"

	"github.com/google/gopacket"
	glayers "github.com/google/gopacket/layers"

	"github.com/gohixl/hixl/roce/layers"
)

// A SEND of "hello", from the IP header on.
const hello = "4500003400004000" + "4011b6b5c0000201c0000202" + "c12312b700200000" +
	"0470ffff0000001180000001" + "68656c6c6f000000" + "9b3a0f82"

// After importing the package any gopacket program decodes RoCEv2.
func Example() {
	data, _ := hex.DecodeString(hello)
	packet := gopacket.NewPacket(data, glayers.LayerTypeIPv4, gopacket.Default)
	for _, l := range packet.Layers() {
		fmt.Println(l.LayerType())
	}
	bth := packet.Layer(layers.LayerTypeBTH).(*layers.BTH)
	icrc := packet.Layer(layers.LayerTypeICRC).(*layers.ICRC)
	fmt.Printf("%v to QP %#x, PSN %d: %s, ICRC %v\n",
		bth.Opcode, bth.DestQP, bth.PSN, packet.ApplicationLayer().Payload(), icrc.Verdict)
	// Output:
	// IPv4
	// UDP
	// BTH
	// Payload
	// ICRC
	// RC SEND_ONLY to QP 0x11, PSN 1: hello, ICRC good
}

// A parser that reuses its layers decodes without allocating.
func ExampleDecoder() {
	data, _ := hex.DecodeString(hello)
	var (
		ip      glayers.IPv4
		udp     glayers.UDP
		payload gopacket.Payload
		decoded []gopacket.LayerType
	)
	d := layers.NewDecoder(&ip, nil, &udp)
	parser := gopacket.NewDecodingLayerParser(glayers.LayerTypeIPv4, &ip, &udp, &payload)
	for _, l := range d.Layers() {
		parser.AddDecodingLayer(l)
	}
	if err := parser.DecodeLayers(data, &decoded); err != nil {
		fmt.Println(err)
	}
	fmt.Println(decoded)
	fmt.Println(d.BTH.PSN, string(payload), d.ICRC.Verdict)
	// Output:
	// [IPv4 UDP BTH ICRC Payload]
	// 1 hello good
}
