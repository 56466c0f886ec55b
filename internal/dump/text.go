package dump

import (
	"strconv"
	"time"

	"github.com/gohixl/hixl/roce"
)

// text prints a finding a line.
type text struct {
	start time.Time
	fine  bool // nanoseconds
}

func (t *text) append(b []byte, n uint64, p *Packet, f *finding) []byte {
	if n == 1 {
		t.start = p.Time
	}
	b = appendPadded(b, n, 6)
	b = append(b, ' ')
	b = t.appendTime(b, p.Time.Sub(t.start))
	b = append(b, ' ')
	b = appendAddresses(b, f)
	switch f.kind {
	case kindRoCE:
		b = f.packet.AppendString(b)
		b = appendVerdict(b, f)
	case kindMalformed:
		b = append(append(b, "MALFORMED "...), f.err.Error()...)
	case kindRoCEv1:
		b = append(b, "RoCEv1 (EtherType 0x8915), not decoded"...)
	case kindOther:
		b = append(append(b, "other: "...), f.err.Error()...)
	}
	return append(b, '\n')
}

// appendAddresses appends what is known of addresses, ports and IP header.
func appendAddresses(b []byte, f *finding) []byte {
	h := &f.frame
	if !h.Src.IsValid() {
		return b
	}
	b = h.Src.AppendTo(b)
	b = append(b, " > "...)
	b = h.Dst.AppendTo(b)
	if f.kind == kindRoCE || f.kind == kindMalformed {
		b = strconv.AppendUint(append(b, " sport "...), uint64(h.SrcPort), 10)
		b = appendIP(b, h)
	} else if h.DstPort != 0 {
		b = strconv.AppendUint(append(b, " UDP "...), uint64(h.SrcPort), 10)
		b = strconv.AppendUint(append(b, " > "...), uint64(h.DstPort), 10)
	}
	return append(b, ": "...)
}

func appendIP(b []byte, h *roce.Frame) []byte {
	if h.Tags > 0 {
		b = strconv.AppendUint(append(b, " vlan "...), uint64(h.VLAN&0xFFF), 10)
	}
	if h.Src.Is6() {
		b = strconv.AppendUint(append(b, " flow 0x"...), uint64(h.FlowLabel), 16)
	} else {
		b = strconv.AppendUint(append(b, " id 0x"...), uint64(h.ID), 16)
		if h.Frag&roce.DontFragment != 0 {
			b = append(b, " DF"...)
		}
	}
	if h.TOS != 0 {
		b = strconv.AppendUint(append(b, " tos 0x"...), uint64(h.TOS), 16)
	}
	return b
}

func appendVerdict(b []byte, f *finding) []byte {
	b = append(append(b, " icrc "...), f.icrc...)
	if f.icrc == icrcBad {
		b = appendHex32(append(b, ": found "...), f.got)
		b = appendHex32(append(b, ", expected "...), f.want)
	}
	if f.hint != "" {
		b = append(append(append(b, " ("...), f.hint...), ')')
	}
	return b
}

// appendTime appends seconds since the first packet.
func (t *text) appendTime(b []byte, d time.Duration) []byte {
	if d < 0 {
		b, d = append(b, '-'), max(-d, 0) // a file may claim times whose distance has no opposite
	}
	b = strconv.AppendInt(b, int64(d/time.Second), 10)
	b = append(b, '.')
	digits, frac := 6, uint64(d%time.Second)/1000
	if t.fine {
		digits, frac = 9, uint64(d%time.Second)
	}
	at := len(b)
	b = strconv.AppendUint(b, frac+pow10(uint8(digits)), 10) // a one in front keeps the zeros
	return append(b[:at], b[at+1:]...)
}

func appendPadded(b []byte, v uint64, width int) []byte {
	for limit := uint64(10); width > 1; width, limit = width-1, limit*10 {
		if v < limit {
			for range width - 1 {
				b = append(b, ' ')
			}
			break
		}
	}
	return strconv.AppendUint(b, v, 10)
}

func appendHex32(b []byte, v uint32) []byte {
	b = append(b, "0x"...)
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[v>>shift&0xF])
	}
	return b
}
