package dump

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gohixl/hixl/roce"
)

// kind is what a captured packet turned out to be.
type kind string

const (
	kindRoCE      kind = "roce"
	kindMalformed kind = "malformed" // to port 4791, but no packet
	kindRoCEv1    kind = "rocev1"
	kindOther     kind = "other"
)

// verdict is what can be said about an ICRC.
type verdict string

const (
	icrcOK        verdict = "ok"
	icrcBad       verdict = "bad"
	icrcUnchecked verdict = "unchecked" // not all of the packet was captured
)

// finding is all that is known about one captured packet. It is filled again
// for each; what it holds aliases the Reader's packet.
type finding struct {
	kind   kind
	frame  roce.Frame
	packet roce.Packet // with kindRoCE
	icrc   verdict
	got    uint32 // the ICRC found and the one expected, with icrcBad
	want   uint32
	hint   string // why an ICRC may be bad
	err    error  // why it is not kindRoCE

	scratch []byte
}

// inspect fills f from a captured packet.
func (f *finding) inspect(p *Packet) {
	f.kind, f.icrc, f.hint = kindOther, "", ""
	f.err = roce.DecodeFrame(p.Link, p.Data, &f.frame)
	payload, cut := f.frame.Payload, false
	switch {
	case f.err == nil:
	case errors.Is(f.err, roce.ErrRoCEv1):
		f.kind = kindRoCEv1
		return
	case f.frame.DstPort != roce.Port:
		return
	case errors.Is(f.err, roce.ErrTruncated) && p.Len > len(p.Data):
		payload, cut = f.complete(), true
	default:
		f.kind = kindMalformed
		return
	}
	if err := f.packet.Decode(payload); err != nil {
		f.kind, f.err = kindMalformed, fmt.Errorf("%w (%d bytes)", err, len(payload))
		return
	}
	f.kind, f.err = kindRoCE, nil
	switch have := len(f.frame.Payload); {
	case cut && have < f.packet.HeaderLen():
		f.kind = kindMalformed
		f.err = fmt.Errorf("the capture kept only %d of the packet's %d bytes", have, len(payload))
	case cut:
		f.icrc = icrcUnchecked
		f.hint = fmt.Sprintf("%d of %d bytes captured", have, len(payload))
	default:
		f.check(payload)
	}
}

// complete returns what the capture kept of the UDP payload, filled up with
// zeros to the length it had, so that its headers can be decoded.
func (f *finding) complete() []byte {
	n := max(int(f.frame.UDPLen)-8, len(f.frame.Payload)) // at most 64 KiB: a 16-bit field
	f.scratch = append(f.scratch[:0], f.frame.Payload...)
	f.scratch = append(f.scratch, make([]byte, n-len(f.frame.Payload))...)
	return f.scratch
}

func (f *finding) check(payload []byte) {
	n := len(payload) - roce.ICRCLen
	f.got = binary.LittleEndian.Uint32(payload[n:])
	f.want = f.frame.ICRC(payload[:n])
	if f.got == f.want {
		f.icrc = icrcOK
		return
	}
	f.icrc = icrcBad
	if len(f.packet.Payload) > roce.MaxMTU {
		f.hint = "longer than any path MTU: perhaps a train that the kernel had not cut apart yet; capture on the wire"
	}
}

// count adds the finding to a summary.
func (f *finding) count(s *Summary) {
	s.Packets++
	switch f.kind {
	case kindRoCE:
		s.RoCE++
		switch f.icrc {
		case icrcOK:
			s.ICRCOK++
		case icrcBad:
			s.ICRCBad++
		case icrcUnchecked:
		}
	case kindMalformed:
		s.Malformed++
	case kindRoCEv1, kindOther:
	}
}
