package hostiletest

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

// recordings are the UDP payloads of the captures of a real peer.
var recordings = sync.OnceValues(func() (list [][]byte, err error) {
	files, err := filepath.Glob("../../../testdata/pcaps/*.pcap")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		list = append(list, payloads(b)...)
	}
	return list, err
})

// payloads are the RoCEv2 packets of a capture file of this host's or the other
// byte order.
func payloads(b []byte) (list [][]byte) {
	var order binary.ByteOrder = binary.LittleEndian
	if be.Uint32(b) == 0xA1B2C3D4 || be.Uint32(b) == 0xA1B23C4D {
		order = be
	}
	link := roce.LinkType(order.Uint32(b[20:]))
	for b = b[24:]; len(b) >= 16; {
		n := order.Uint32(b[8:])
		var f roce.Frame
		if frame := b[16 : 16+n]; roce.DecodeFrame(link, frame, &f) == nil {
			list = append(list, f.Payload)
		}
		b = b[16+n:]
	}
	return list
}

// recorded bends a recorded packet: to a queue pair that is there, to a PSN that
// is near, to memory that exists, or not.
func (w *world) recorded(c *conn) shot {
	all, err := recordings()
	require.NoError(w.t, err)
	require.NotEmpty(w.t, all)
	rng := w.rng
	b := append(make([]byte, 0, 4200), pick(rng, all...)...)
	l := layouts[b[0]]
	if rng.IntN(8) > 0 {
		be.PutUint32(b[4:], uint32(b[4])<<24|c.qpn)
	}
	if rng.IntN(4) > 0 {
		psn := c.resp.psn
		if l.dir == 'r' {
			psn = c.req.psn(c.req.una)
		}
		psn += uint32(pick(rng, 0, 0, 0, 1, -1, rng.IntN(8)-4))
		be.PutUint32(b[8:], uint32(b[8])<<24|psn&mask24)
	}
	if rng.IntN(2) == 0 && l.headers != "" && (l.headers[0] == 'R' || l.headers[0] == 'T') && len(b) >= bthLen+12+icrcLen {
		r := pick(rng, w.regions...)
		be.PutUint64(b[bthLen:], r.base+rng.Uint64N(r.size)&^7)
		be.PutUint32(b[bthLen+8:], r.rkey)
	}
	s := shot{from: c.peer, port: 0xC000 + uint16(rng.IntN(1<<14)), b: b, about: "recorded"}
	if rng.IntN(4) == 0 {
		s.b, _ = w.damage(s.b)
	}
	return w.seal(s)
}
