package bridge

import "github.com/gohixl/hixl/roce"

// Rule names packets to lose.
type Rule struct {
	From  string                    // port by which they come in; empty is any
	Match func(p *roce.Packet) bool // nil is every RoCE packet
	Skip  int                       // so many that match pass first
	Count int                       // then so many are lost; 0 is all
}

type rule struct {
	Rule
	seen int
}

// Drop adds a rule.
func (s *Switch) Drop(r Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, &rule{Rule: r})
}

// Opcodes matches packets of any of the opcodes.
func Opcodes(ops ...roce.Opcode) func(*roce.Packet) bool {
	return func(p *roce.Packet) bool {
		for _, op := range ops {
			if p.Opcode == op {
				return true
			}
		}
		return false
	}
}

// ruledOut reports whether a rule wants the packet lost. mu is held.
func (s *Switch) ruledOut(p *port, v *view) bool {
	if !v.whole {
		return false
	}
	for _, r := range s.rules {
		if r.From != "" && r.From != p.name || r.Match != nil && !r.Match(&v.packet) {
			continue
		}
		r.seen++
		if r.seen > r.Skip && (r.Count == 0 || r.seen <= r.Skip+r.Count) {
			return true
		}
	}
	return false
}
