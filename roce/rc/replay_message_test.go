package rc_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// message is a send work request of a recording.
type message struct {
	op               wr.Op
	first            roce.PSN
	npsn             int
	pos              int // of its first packet
	va               uint64
	rkey, imm, inv   uint32
	swapAdd, compare uint64
	length           int
	data             []byte // of SEND and WRITE
}

// consumes reports whether the message takes a receive.
func (m *message) consumes() bool { return m.op <= wr.OpSendInv || m.op == wr.OpWriteImm }

// operations maps the opcode that ends a message to the work request.
var operations = map[roce.Opcode]wr.Op{
	roce.OpSendLast: wr.OpSend, roce.OpSendOnly: wr.OpSend,
	roce.OpSendLastImm: wr.OpSendImm, roce.OpSendOnlyImm: wr.OpSendImm,
	roce.OpSendLastInv: wr.OpSendInv, roce.OpSendOnlyInv: wr.OpSendInv,
	roce.OpWriteLast: wr.OpWrite, roce.OpWriteOnly: wr.OpWrite,
	roce.OpWriteLastImm: wr.OpWriteImm, roce.OpWriteOnlyImm: wr.OpWriteImm,
	roce.OpReadRequest: wr.OpRead, roce.OpCmpSwap: wr.OpCmpSwap, roce.OpFetchAdd: wr.OpFetchAdd,
}

// endsMessage reports whether a request packet is the last of its message.
func endsMessage(op roce.Opcode) bool {
	_, ok := operations[op]
	return ok
}

// psns is the number of PSNs that a request packet takes (§3.2).
func psns(p *roce.Packet, mtu int) int {
	if p.Opcode != roce.OpReadRequest {
		return 1
	}
	return max(1, (int(p.RETH.Len)+mtu-1)/mtu)
}

// recorded puts together the work requests that an end sent, from the first
// transmission of each packet.
func (c *connection) recorded(t testing.TB, from side) []message {
	t.Helper()
	var list []message
	var m *message
	next := 0
	for i := range c.packets {
		k := &c.packets[i]
		if k.from != from || !k.p.Opcode.IsRequest() || c.offset(from, k.p.PSN) != next {
			continue // another's, or a resend
		}
		if m == nil {
			list = append(list, message{first: k.p.PSN, pos: i, va: k.p.RETH.VA, rkey: k.p.RETH.RKey})
			m = &list[len(list)-1]
		}
		m.add(&k.p, psns(&k.p, c.mtu))
		next += psns(&k.p, c.mtu)
		if endsMessage(k.p.Opcode) {
			m = nil
		}
	}
	require.Nil(t, m, "the recording ends inside a message")
	return list
}

func (m *message) add(p *roce.Packet, npsn int) {
	m.npsn += npsn
	m.data = append(m.data, p.Payload...)
	if p.Opcode.Has(roce.HasAtomicETH) {
		m.va, m.rkey, m.swapAdd, m.compare = p.Atomic.VA, p.Atomic.RKey, p.Atomic.SwapAdd, p.Atomic.Compare
		m.length = 8
	} else {
		m.length = max(len(m.data), int(p.RETH.Len))
	}
	m.op, m.imm, m.inv = operations[p.Opcode], p.Imm, p.InvKey
}

// commanded is the work requests that vt's command line asks for.
func (s *script) commanded(mtu int) []message {
	o, peer := s.options[active], s.ends[passive]
	key := peer.rkey
	if o["B"] != 0 {
		key ^= 0xff00
	}
	m := message{npsn: max(1, (o["s"]+mtu-1)/mtu), length: o["s"]}
	switch s.op {
	case "send":
		m.op = wr.OpSend
	case "sendimm":
		m.op, m.imm = wr.OpSendImm, 0xcafe0001
	case "sendinv":
		m.op, m.inv = wr.OpSendInv, key
	case "write":
		m.op, m.va, m.rkey = wr.OpWrite, peer.addr, key
	case "writeimm":
		m.op, m.va, m.rkey, m.imm = wr.OpWriteImm, peer.addr, key, 0xcafe0001
	case "read":
		m.op, m.va, m.rkey = wr.OpRead, peer.addr, key
	case "cas":
		m.op, m.va, m.rkey, m.compare, m.swapAdd = wr.OpCmpSwap, peer.addr, key, 0x0706050403020100, 0x1122334455667788
	case "faa":
		m.op, m.va, m.rkey, m.swapAdd = wr.OpFetchAdd, peer.addr, key, 1
	}
	switch {
	case m.op.Atomic():
		m.length, m.npsn = 8, 1
	case m.op != wr.OpRead && m.length > 0:
		m.data = counting(0x80, m.length)
	}
	list := make([]message, o["n"])
	for i := range list {
		list[i] = m
		list[i].first = s.ends[active].psn.Add(i * m.npsn)
	}
	return list
}

// counting is vt's pattern: bytes that count up from first.
func counting(first byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = first + byte(i)
	}
	return b
}

// returned is what a READ or atomic brought back according to the recording,
// nil if it was not answered.
func (c *connection) returned(from side, m *message) []byte {
	var parts [][]byte
	for i := range c.packets {
		k := &c.packets[i]
		if k.from == from || !k.p.Opcode.IsResponse() {
			continue
		}
		at := int(k.p.PSN.Sub(m.first))
		switch {
		case at < 0 || at >= m.npsn || k.p.Opcode == roce.OpAcknowledge:
		case k.p.Opcode == roce.OpAtomicAck:
			return binary.NativeEndian.AppendUint64(nil, k.p.AtomicAck)
		case at == len(parts):
			parts = append(parts, k.p.Payload)
		}
	}
	if len(parts) != m.npsn {
		return nil
	}
	return bytes.Join(parts, nil)
}
