package bridge

import (
	"encoding/binary"

	"github.com/gohixl/hixl/roce"
)

const (
	ipv6Len = 40
	udpSum  = 6 // offset of the checksum
)

// view is a frame seen as a RoCE packet.
type view struct {
	frame  roce.Frame
	packet roce.Packet
	whole  bool // packet was decoded
}

// look reports whether the frame carries RoCE, well formed or not.
func (v *view) look(frame []byte) bool {
	if roce.DecodeFrame(roce.LinkEthernet, frame, &v.frame) != nil || len(v.frame.Payload) < roce.BTHLen {
		return false
	}
	v.whole = v.packet.Decode(v.frame.Payload) == nil
	return true
}

// flip inverts one bit of the UDP payload. A UDP checksum is made right again;
// IPv4 may have none.
func (v *view) flip(bit int) {
	v.frame.Payload[bit/8] ^= 1 << (bit % 8)
	head := ipv6Len
	if v.frame.IP[0]>>4 == 4 {
		head = int(v.frame.IP[0]&0xf) * 4
	}
	udp := v.frame.IP[head : head+int(v.frame.UDPLen)]
	sum := udp[udpSum : udpSum+2]
	if binary.BigEndian.Uint16(sum) == 0 {
		return
	}
	binary.BigEndian.PutUint16(sum, roce.UDPChecksum(v.frame.Src, v.frame.Dst, udp))
}
