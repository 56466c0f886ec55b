package nic

import "github.com/gohixl/hixl/mr"

// loan keeps the region of the last span lent until the end of a batch, so that a
// run of packets into or out of one region pays for the loan once: a locked
// instruction behind every copied payload would wait for its stores. A region
// that is being deregistered is waited for that much longer; its bytes are not
// touched after it was revoked.
type loan struct{ span mr.Span }

// take lends the region of s, and reports whether it may be used.
func (l *loan) take(s *mr.Span) bool {
	if l.span.Region == s.Region && l.span.Remote == s.Remote {
		return s.Usable()
	}
	l.end()
	if !s.Acquire() {
		return false
	}
	l.span = *s
	return true
}

// end gives back what is lent.
func (l *loan) end() {
	if l.span.Region != nil {
		l.span.Release()
		l.span = mr.Span{}
	}
}
