package verbs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// WC is a completion as either end shows it. What a failed one does not have is
// zero.
type WC struct {
	ID, Status int
	Op         int // verbs number
	Len        int // receives only, as all below
	Imm        string
	Inv        string // of SEND with invalidate: right or wrong; rdma_rxe shows none
	GRH        string // of datagrams: right or wrong
}

// String returns the line of the exchange.
func (w WC) String() string {
	s := fmt.Sprintf("wc id=%d status=%d", w.ID, w.Status)
	if w.Status != 0 {
		return s
	}
	s += fmt.Sprintf(" op=%d", w.Op)
	if w.Op >= Received {
		s += fmt.Sprintf(" len=%d", w.Len)
	}
	for _, f := range [...]struct{ key, value string }{{"imm", w.Imm}, {"inv", w.Inv}, {"grh", w.GRH}} {
		if f.value != "" {
			s += " " + f.key + "=" + f.value
		}
	}
	return s
}

// The verbs numbers of receives.
const (
	Received         = 128
	ReceivedWriteImm = 129
)

// Result is what both ends saw.
type Result struct {
	WCs, PeerWCs     []WC
	Slots, PeerSlots Slots
}

// ErrResult is what output that makes no sense unwraps to.
var ErrResult = errors.New("verbs: no result")

// ParseResult reads what the active end prints.
func ParseResult(text string) (*Result, error) {
	r := new(Result)
	for line := range strings.Lines(text) {
		line, peer := strings.CutPrefix(strings.TrimSpace(line), "peer ")
		if err := r.add(line, peer); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *Result) add(line string, peer bool) error {
	kind, rest, _ := strings.Cut(line, " ")
	values := make(map[string]string)
	for pair := range strings.FieldsSeq(rest) {
		k, v, _ := strings.Cut(pair, "=")
		values[k] = v
	}
	var bad error
	number := func(key string) int {
		n, err := strconv.Atoi(values[key])
		if err != nil {
			bad = fmt.Errorf("%w: %q", ErrResult, line)
		}
		return n
	}
	wcs, slots := &r.WCs, &r.Slots
	if peer {
		wcs, slots = &r.PeerWCs, &r.PeerSlots
	}
	switch kind {
	case "slots":
		*slots = Slots{number("final"), number("initial"), number("mixed")}
	case "wc":
		w := WC{ID: number("id"), Status: number("status"), Imm: values["imm"], Inv: values["inv"], GRH: values["grh"]}
		if w.Status == 0 {
			w.Op = number("op")
		}
		if w.Op >= Received {
			w.Len = number("len")
		}
		*wcs = append(*wcs, w)
	default:
		return fmt.Errorf("%w: %q", ErrResult, line)
	}
	return bad
}

// String returns the active end's output.
func (r *Result) String() string {
	var b strings.Builder
	for _, w := range r.WCs {
		fmt.Fprintln(&b, w)
	}
	fmt.Fprintln(&b, "slots", r.Slots)
	for _, w := range r.PeerWCs {
		fmt.Fprintln(&b, "peer", w)
	}
	fmt.Fprintln(&b, "peer slots", r.PeerSlots)
	return b.String()
}
