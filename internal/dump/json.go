package dump

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"github.com/gohixl/hixl/roce"
)

// hex is a number that JSON readers may not round: addresses, keys, operands.
type hex uint64

// MarshalText writes 0x and hexadecimal digits.
func (h hex) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%#x", uint64(h)), nil }

// object is a packet as JSON. Headers that the packet does not have are left out.
type object struct {
	N     uint64     `json:"n"`
	Time  string     `json:"time,omitempty"` // RFC 3339; absent where the capture has none
	Kind  kind       `json:"kind"`
	Error string     `json:"error,omitempty"`
	Src   netip.Addr `json:"src,omitzero"`
	Dst   netip.Addr `json:"dst,omitzero"`
	SPort uint16     `json:"sport,omitempty"`
	DPort uint16     `json:"dport,omitempty"`
	IP    *ipObject  `json:"ip,omitempty"`
	*packetObject
	ICRC verdict `json:"icrc,omitempty"`
	Hint string  `json:"hint,omitempty"`
}

type ipObject struct {
	ID   uint16  `json:"id"`
	DF   bool    `json:"df,omitempty"`
	TOS  uint8   `json:"tos"`
	TTL  uint8   `json:"ttl"`
	Flow *uint32 `json:"flow,omitempty"`
	VLAN *uint16 `json:"vlan,omitempty"`
}

type packetObject struct {
	Op      string        `json:"op"`
	Opcode  uint8         `json:"opcode"`
	QP      roce.QPN      `json:"qp"`
	PSN     roce.PSN      `json:"psn"`
	AckReq  bool          `json:"ackreq,omitempty"`
	SE      bool          `json:"se,omitempty"`
	Mig     bool          `json:"mig,omitempty"`
	FECN    bool          `json:"fecn,omitempty"`
	BECN    bool          `json:"becn,omitempty"`
	PKey    hex           `json:"pkey"`
	Pad     uint8         `json:"pad,omitempty"`
	DETH    *dethObject   `json:"deth,omitempty"`
	SRQ     *uint32       `json:"srq,omitempty"`
	FETH    *fethObject   `json:"feth,omitempty"`
	RETH    *rethObject   `json:"reth,omitempty"`
	Atomic  *atomicObject `json:"atomic,omitempty"`
	AETH    *aethObject   `json:"aeth,omitempty"`
	Orig    *hex          `json:"orig,omitempty"`
	Imm     *hex          `json:"imm,omitempty"`
	InvKey  *hex          `json:"inv_rkey,omitempty"`
	Payload int           `json:"payload"`
}

type dethObject struct {
	QKey  hex      `json:"qkey"`
	SrcQP roce.QPN `json:"srcqp"`
}

type fethObject struct {
	Type   uint8 `json:"type"`
	Select uint8 `json:"select"`
}

type rethObject struct {
	VA   hex    `json:"va"`
	RKey hex    `json:"rkey"`
	Len  uint32 `json:"len"`
}

type atomicObject struct {
	VA      hex `json:"va"`
	RKey    hex `json:"rkey"`
	SwapAdd hex `json:"swap_add"`
	Compare hex `json:"compare"`
}

type aethObject struct {
	Syndrome hex    `json:"syndrome"`
	Text     string `json:"text"`
	MSN      uint32 `json:"msn"`
}

// appendJSON appends a finding as one line of JSON.
func appendJSON(b []byte, n uint64, p *Packet, f *finding) ([]byte, error) {
	o := object{N: n, Kind: f.kind, ICRC: f.icrc, Hint: f.hint}
	if !p.Time.IsZero() {
		o.Time = p.Time.Format(time.RFC3339Nano)
	}
	h := &f.frame
	o.Src, o.Dst, o.SPort, o.DPort = h.Src, h.Dst, h.SrcPort, h.DstPort
	if f.err != nil {
		o.Error = f.err.Error()
	}
	if h.Src.IsValid() {
		o.IP = &ipObject{ID: h.ID, DF: h.Frag&roce.DontFragment != 0, TOS: h.TOS, TTL: h.TTL}
		if h.Src.Is6() {
			o.IP.Flow = &h.FlowLabel
		}
		if h.Tags > 0 {
			o.IP.VLAN = &h.VLAN
		}
	}
	if f.kind == kindRoCE {
		o.packetObject = newPacketObject(&f.packet)
	}
	line, err := json.Marshal(&o)
	return append(append(b, line...), '\n'), err
}

func newPacketObject(p *roce.Packet) *packetObject {
	o := &packetObject{
		Op: p.Opcode.String(), Opcode: uint8(p.Opcode), QP: p.DestQP, PSN: p.PSN, AckReq: p.AckReq, SE: p.SE,
		Mig: p.Mig, FECN: p.FECN, BECN: p.BECN, PKey: hex(p.PKey), Pad: p.Pad, Payload: len(p.Payload),
	}
	has := p.Opcode.Has
	if has(roce.HasDETH) {
		o.DETH = &dethObject{QKey: hex(p.DETH.QKey), SrcQP: p.DETH.SrcQP}
	}
	if has(roce.HasXRCETH) {
		o.SRQ = &p.SRQN
	}
	if has(roce.HasFETH) {
		o.FETH = &fethObject{Type: p.FETH.Type, Select: p.FETH.Select}
	}
	if has(roce.HasRETH) {
		o.RETH = &rethObject{VA: hex(p.RETH.VA), RKey: hex(p.RETH.RKey), Len: p.RETH.Len}
	}
	if has(roce.HasAtomicETH) {
		o.Atomic = &atomicObject{
			VA: hex(p.Atomic.VA), RKey: hex(p.Atomic.RKey),
			SwapAdd: hex(p.Atomic.SwapAdd), Compare: hex(p.Atomic.Compare),
		}
	}
	if has(roce.HasAETH) {
		o.AETH = &aethObject{Syndrome: hex(p.AETH.Syndrome), Text: p.AETH.Syndrome.String(), MSN: p.AETH.MSN}
	}
	if has(roce.HasAtomicAck) {
		o.Orig = hexPtr(p.AtomicAck)
	}
	if has(roce.HasImm) {
		o.Imm = hexPtr(uint64(p.Imm))
	}
	if has(roce.HasIETH) {
		o.InvKey = hexPtr(uint64(p.InvKey))
	}
	return o
}

func hexPtr(v uint64) *hex {
	h := hex(v)
	return &h
}
