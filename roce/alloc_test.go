package roce_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

// Nothing on the packet path allocates, refusals included.
func TestAllocations(t *testing.T) {
	hello := unhex(t, helloPacket+"9b3a0f82")
	ip := unhex(t, vectors["§2.2 IPv4"])
	frame := ethernet(ip, 7)
	other := append([]byte(nil), frame...)
	other[12+4+2+9+2] = 6 // TCP
	unknown := append([]byte{0xFF}, hello[1:]...)
	padded := append([]byte{hello[0], 0x30}, hello[2:16]...)
	buf := make([]byte, 0, 256)

	var (
		p   roce.Packet
		f   roce.Frame
		h   = helloHeaders
		err error
		udp roce.UDP
		ip4 roce.IPv4

		template roce.Template
	)
	require.NoError(t, p.Decode(hello))
	require.NoError(t, roce.DecodeFrame(roce.LinkEthernet, frame, &f))
	_, err = ip4.Decode(ip)
	require.NoError(t, err)
	for name, run := range map[string]func(){
		"Decode":            func() { err = p.Decode(hello) },
		"Decode unknown":    func() { err = new(roce.Packet).Decode(unknown) },
		"Decode bad pad":    func() { err = new(roce.Packet).Decode(padded) },
		"Decode short":      func() { err = new(roce.Packet).Decode(hello[:7]) },
		"AppendHeader":      func() { p.AppendHeader(buf) },
		"Append":            func() { p.Append(buf) },
		"CheckLength":       func() { err = p.CheckLength(1024) },
		"ICRC":              func() { h.ICRC(hello) },
		"Check":             func() { h.Check(hello) },
		"Begin":             func() { h.Begin(hello[:roce.BTHLen], len(hello)) },
		"Template":          func() { template.Begin(&h, 9, hello[:roce.BTHLen], len(hello)) },
		"Template anew":     func() { template = roce.Template{}; template.Begin(&h, 9, hello[:roce.BTHLen], len(hello)) },
		"CheckAnyID":        func() { h.ID = 9; h.CheckAnyID(hello, 127) },
		"DecodeFrame":       func() { err = roce.DecodeFrame(roce.LinkEthernet, frame, &f) },
		"DecodeFrame other": func() { err = roce.DecodeFrame(roce.LinkEthernet, other, &f) },
		"DecodeFrame short": func() { err = roce.DecodeFrame(roce.LinkEthernet, frame[:50], &f) },
		"IPv4":              func() { ip4.Append(buf) },
		"UDP":               func() { udp.Append(buf) },
		"UDPChecksum":       func() { roce.UDPChecksum(h.Src, h.Dst, hello) },
		"AppendString":      func() { p.AppendString(buf) },
	} {
		require.Zero(t, testing.AllocsPerRun(100, run), name)
	}
	_ = err
}
