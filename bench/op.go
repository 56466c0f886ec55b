package bench

import "strings"

// Op is an operation that a cell measures.
type Op uint8

// The operations, in the order in which they are measured and shown.
const (
	OpWrite Op = iota
	OpRead
	OpSend
	OpWriteImm
	OpCAS
	OpFAA
	opCount
)

// atomicSize is the length of what an atomic works on; --size does not apply.
const atomicSize = 8

// opNames are the names on the command line and in reports.
var opNames = [opCount]string{"write", "read", "send", "write-imm", "cas", "faa"}

// String returns the name used on the command line.
func (o Op) String() string {
	if o < opCount {
		return opNames[o]
	}
	return "unknown"
}

// MarshalText gives the name.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the name.
func (o *Op) UnmarshalText(b []byte) error {
	op, err := parseOp(string(b))
	*o = op
	return err
}

// atomic reports whether the operation is a 64-bit atomic.
func (o Op) atomic() bool { return o == OpCAS || o == OpFAA }

// receives reports whether the responder must have receives posted.
func (o Op) receives() bool { return o == OpSend || o == OpWriteImm }

// pulls reports whether the bytes come to the requester.
func (o Op) pulls() bool { return o == OpRead }

// AllOps returns every operation.
func AllOps() []Op {
	ops := make([]Op, opCount)
	for i := range ops {
		ops[i] = Op(i)
	}
	return ops
}

func parseOp(s string) (Op, error) {
	for i, n := range opNames {
		if s == n {
			return Op(i), nil
		}
	}
	return 0, &FlagError{
		Flag: "op", Given: `"` + s + `"`, Allowed: strings.Join(opNames[:], ", "),
		Do: "give one or several separated by commas; without the flag all are run",
	}
}
