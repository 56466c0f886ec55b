//go:build linux

package matrix

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"

	"github.com/gohixl/hixl/internal/dump"
	"github.com/gohixl/hixl/roce"
)

// Traffic is what a capture holds.
type Traffic struct {
	Packets int
	Resent  int // request packets whose number was seen before
}

func (t Traffic) String() string {
	s := fmt.Sprintf("%d packets on the bridge", t.Packets)
	if t.Resent > 0 {
		s += fmt.Sprintf(", %d of them sent again", t.Resent)
	}
	return s
}

// flow is a direction of a connection.
type flow struct {
	src, dst netip.Addr
	qpn      roce.QPN
}

// Inspect reads a capture, checks every packet and counts what was sent again.
// The error unwraps to [ErrWrong] for a packet that is malformed or has a wrong
// ICRC.
func Inspect(path string) (Traffic, error) {
	f, err := os.Open(path)
	if err != nil {
		return Traffic{}, err
	}
	defer f.Close()
	var t Traffic
	r, err := dump.NewReader(f)
	if err != nil {
		return t, err
	}
	seen := make(map[flow]map[roce.PSN]bool)
	for {
		var raw dump.Packet
		switch err := r.Next(&raw); {
		case errors.Is(err, io.EOF):
			return t, nil
		case err != nil:
			return t, err
		}
		var frame roce.Frame
		var p roce.Packet
		if err := roce.DecodeFrame(roce.LinkEthernet, raw.Data, &frame); err != nil {
			return t, wrong("packet %d: %v", t.Packets+1, err)
		}
		if err := p.Decode(frame.Payload); err != nil {
			return t, wrong("packet %d: %v", t.Packets+1, err)
		}
		t.Packets++
		if !frame.Check(frame.Payload) {
			return t, wrong("packet %d from %v, %v psn %#x: wrong ICRC", t.Packets, frame.Src, p.Opcode, p.PSN)
		}
		if p.Opcode.Transport() == roce.RC && p.Opcode.IsRequest() {
			key := flow{frame.Src, frame.Dst, p.DestQP}
			if seen[key] == nil {
				seen[key] = make(map[roce.PSN]bool)
			}
			if seen[key][p.PSN] {
				t.Resent++
			}
			seen[key][p.PSN] = true
		}
	}
}
