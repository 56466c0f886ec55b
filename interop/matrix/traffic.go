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
	Resent  int // request packets that ask again for what was asked for before
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

// requests are what a flow has asked for.
type requests struct {
	seen  map[roce.PSN]bool
	reads []roce.RETH
}

// again records a request and reports whether it repeats one. A READ that is
// resumed has a new number and an address inside an earlier one's range.
func (r *requests) again(p *roce.Packet) bool {
	again := r.seen[p.PSN]
	r.seen[p.PSN] = true
	if p.Opcode == roce.OpReadRequest {
		for _, e := range r.reads {
			again = again || e.RKey == p.RETH.RKey && p.RETH.VA > e.VA && p.RETH.VA-e.VA < uint64(e.Len)
		}
		r.reads = append(r.reads, p.RETH)
	}
	return again
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
	flows := make(map[flow]*requests)
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
			return t, damaged("packet %d: %v", t.Packets+1, err)
		}
		if err := p.Decode(frame.Payload); err != nil {
			return t, damaged("packet %d: %v", t.Packets+1, err)
		}
		t.Packets++
		if !frame.Check(frame.Payload) {
			return t, damaged("packet %d from %v, %v psn %#x: wrong ICRC", t.Packets, frame.Src, p.Opcode, p.PSN)
		}
		if p.Opcode.Transport() == roce.RC && p.Opcode.IsRequest() {
			key := flow{frame.Src, frame.Dst, p.DestQP}
			if flows[key] == nil {
				flows[key] = &requests{seen: make(map[roce.PSN]bool)}
			}
			if flows[key].again(&p) {
				t.Resent++
			}
		}
	}
}
