package rc_test

import (
	"fmt"

	"github.com/gohixl/hixl/roce"
)

// withoutAsked is the rule of silentDuplicate: the responses without those that
// duplicates got only because A was set on them.
func (o *outcome) withoutAsked() []emission {
	var list []emission
	for _, r := range o.responses {
		if !o.asked[r.pos] {
			list = append(list, r)
		}
	}
	return list
}

// coalesced is the rule of coalescedACK: of the responses to one batch, an ACK
// that another response follows is left out, and one that stays covers all that
// the batch brought, the beginning of a message included.
func (c *connection) coalesced(end side, o *outcome, batches map[int]int) []emission {
	newest := map[int]int{} // PSN offset of the last packet executed in each batch
	for pos, next := range o.executed {
		newest[batches[pos]] = max(newest[batches[pos]], next-1)
	}
	var list []emission
	for i, r := range o.responses {
		batch := batches[r.pos]
		if isACK(&r.p) {
			if i+1 < len(o.responses) && batch == batches[o.responses[i+1].pos] {
				continue
			}
			r.p.PSN = c.psn[end.other()].Add(newest[batch])
		}
		list = append(list, r)
	}
	return list
}

func isACK(p *roce.Packet) bool {
	return p.Opcode == roce.OpAcknowledge && p.AETH.Syndrome.Kind() == roce.AckACK
}

// sameEmissions compares two plays of our own engine.
func sameEmissions(want, got []emission) error {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			return fmt.Errorf("missing: %v", &want[i].p)
		case i >= len(want):
			return fmt.Errorf("too many: %v", &got[i].p)
		case wire(&want[i].p) != wire(&got[i].p):
			return fmt.Errorf("want %v\nhave %v", &want[i].p, &got[i].p)
		}
	}
	return nil
}
