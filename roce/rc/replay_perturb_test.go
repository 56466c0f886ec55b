package rc_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

// perturbation changes one field of a recorded packet, if it has it.
type perturbation struct {
	name   string
	has    func(p *roce.Packet) bool
	change func(p *roce.Packet)
}

func with(h roce.Hdr) func(p *roce.Packet) bool {
	return func(p *roce.Packet) bool { return p.Opcode.Has(h) }
}

func always(*roce.Packet) bool { return true }

func hasPayload(p *roce.Packet) bool { return len(p.Payload) > 0 }

var perturbations = []perturbation{
	{"PSN", always, func(p *roce.Packet) { p.PSN = p.PSN.Add(1) }},
	{"earlier PSN", always, func(p *roce.Packet) { p.PSN = p.PSN.Add(-1) }},
	{"QPN", always, func(p *roce.Packet) { p.DestQP ^= 1 }},
	{"A", func(p *roce.Packet) bool { return p.Opcode.IsRequest() }, func(p *roce.Packet) { p.AckReq = !p.AckReq }},
	{"SE", always, func(p *roce.Packet) { p.SE = !p.SE }},
	{"first byte", hasPayload, func(p *roce.Packet) { p.Payload[0] ^= 1 }},
	{"last byte", hasPayload, func(p *roce.Packet) { p.Payload[len(p.Payload)-1] ^= 0x80 }},
	{"a byte less", hasPayload, func(p *roce.Packet) { p.SetPayload(p.Payload[1:]) }},
	{"syndrome", with(roce.HasAETH), func(p *roce.Packet) { p.AETH.Syndrome ^= 1 }},
	{"other syndrome", with(roce.HasAETH), func(p *roce.Packet) { p.AETH.Syndrome ^= 0x40 }},
	{"MSN", with(roce.HasAETH), func(p *roce.Packet) { p.AETH.MSN++ }},
	{"original value", with(roce.HasAtomicAck), func(p *roce.Packet) { p.AtomicAck ^= 1 << 40 }},
	{"address", with(roce.HasRETH), func(p *roce.Packet) { p.RETH.VA++ }},
	{"rkey", with(roce.HasRETH), func(p *roce.Packet) { p.RETH.RKey ^= 0x100 }},
	{"length", with(roce.HasRETH), func(p *roce.Packet) { p.RETH.Len++ }},
	{"atomic address", with(roce.HasAtomicETH), func(p *roce.Packet) { p.Atomic.VA += 8 }},
	{"atomic rkey", with(roce.HasAtomicETH), func(p *roce.Packet) { p.Atomic.RKey ^= 0x100 }},
	{"operand", with(roce.HasAtomicETH), func(p *roce.Packet) { p.Atomic.SwapAdd++ }},
	{"compare", with(roce.HasAtomicETH), func(p *roce.Packet) { p.Atomic.Compare++ }},
	{"immediate", with(roce.HasImm), func(p *roce.Packet) { p.Imm++ }},
	{"key to invalidate", with(roce.HasIETH), func(p *roce.Packet) { p.InvKey ^= 0x100 }},
}

// The comparison must be able to fail: a change of any field of any recorded
// packet is noticed, in spite of the tolerances of its recording, and so is a
// response that is missing or there twice.
func TestReplayNoticesDifferences(t *testing.T) {
	applied := map[string]int{}
	for i := range recordings {
		r := &recordings[i]
		for _, c := range r.connections(t) {
			for _, end := range []side{active, passive} {
				how := mode{ask: slices.Contains(r.differs, silentDuplicate)}
				o := c.play(t, end, how, allow(r.differs))
				c.perturb(t, r, end, o, applied)
			}
		}
	}
	for _, x := range perturbations {
		require.Positive(t, applied[x.name], x.name)
	}
}

// perturb changes each packet that an end of the recording sent.
func (c *connection) perturb(t *testing.T, r *recording, end side, o *outcome, applied map[string]int) {
	t.Helper()
	requests := func(list []packet) error { return c.compareRequests(list, o.requests, allow(r.differs)) }
	responses := func(list []packet) error { return c.compareResponses(list, o.responses, allow(r.differs)) }
	for _, x := range perturbations {
		if x.name != "A" || !slices.Contains(r.differs, probe) { // of which A is a part
			applied[x.name] += c.each(t, r.file, c.of(end, true), x, requests)
		}
		applied[x.name] += c.each(t, r.file, c.of(end, false), x, responses)
	}
	list := c.of(end, false)
	for i := range list {
		require.Error(t, responses(slices.Delete(slices.Clone(list), i, i+1)), "%s: %d missing", r.file, list[i].n)
		require.Error(t, responses(slices.Insert(slices.Clone(list), i, list[i])), "%s: %d twice", r.file, list[i].n)
	}
}

// each applies a perturbation to one packet after the other.
func (c *connection) each(t *testing.T, file string, list []packet, x perturbation, compare func([]packet) error) int {
	t.Helper()
	require.NoError(t, compare(list))
	count := 0
	for i := range list {
		saved := list[i].p
		if !x.has(&saved) {
			continue
		}
		list[i].p.Payload = bytes.Clone(saved.Payload)
		x.change(&list[i].p)
		require.Error(t, compare(list), "%s: packet %d with another %s", file, list[i].n, x.name)
		list[i].p = saved
		count++
	}
	return count
}
