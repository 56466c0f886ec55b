package perf

import "fmt"

// Verb is the operation that a test measures.
type Verb uint8

// The verbs.
const (
	Write Verb = iota
	Read
	Send
	Atomic
)

// Kind is what a test measures.
type Kind uint8

// The kinds.
const (
	Bandwidth Kind = iota
	Latency
)

// Test names one of perftest's programs.
type Test struct {
	Verb Verb
	Kind Kind
}

// Tests returns all there are.
func Tests() (all []Test) {
	for _, v := range []Verb{Write, Read, Send, Atomic} {
		all = append(all, Test{v, Bandwidth}, Test{v, Latency})
	}
	return all
}

// String is the program's name without "ib_".
func (t Test) String() string {
	return [...]string{"write", "read", "send", "atomic"}[t.Verb] + "_" + [...]string{"bw", "lat"}[t.Kind]
}

// pulls reports whether data comes from the peer: READs and atomics.
func (t Test) pulls() bool { return t.Verb == Read || t.Verb == Atomic }

// AtomicType chooses the atomic operation of an atomic test.
type AtomicType uint8

// The atomic operations.
const (
	FetchAdd AtomicType = iota // adds 1
	CmpSwap                    // compares with 0 and stores 0, as perftest does
)

// String is perftest's name.
func (a AtomicType) String() string {
	return [...]string{"FETCH_AND_ADD", "CMP_AND_SWAP"}[a]
}

// ParseAtomicType reads perftest's names.
func ParseAtomicType(s string) (AtomicType, error) {
	for _, a := range []AtomicType{FetchAdd, CmpSwap} {
		if s == a.String() {
			return a, nil
		}
	}
	return 0, fmt.Errorf("%q is none of FETCH_AND_ADD, CMP_AND_SWAP", s)
}
