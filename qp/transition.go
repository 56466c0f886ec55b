package qp

// transition is one row of the table of §3.18: the attributes that must be given
// and those that may.
type transition struct {
	legal              bool
	required, optional AttrMask
}

// Sets that appear in several rows.
const (
	initConnected = MaskPKeyIndex | MaskPort | MaskAccess
	initUD        = MaskPKeyIndex | MaskPort | MaskQKey
	initGSI       = MaskPKeyIndex | MaskQKey
	rtrUC         = MaskAV | MaskPathMTU | MaskDestQPN | MaskRecvPSN
	rtrConnected  = MaskAltPath | MaskAccess | MaskPKeyIndex
	rtrDatagram   = MaskPKeyIndex | MaskQKey
	liveUC        = MaskCurState | MaskAltPath | MaskAccess | MaskPathMigState
	liveRC        = liveUC | MaskMinRNRTimer
	liveDatagram  = MaskCurState | MaskQKey
	quietUC       = MaskAV | MaskAltPath | MaskAccess | MaskPKeyIndex | MaskPathMigState
	quietRC       = quietUC | MaskPort | MaskTimeout | MaskRetryCount | MaskRNRRetry | MaskMaxRead |
		MaskMaxDestRead | MaskMinRNRTimer
)

type transitions [numStates][numStates]transition

// table holds the transitions of each type (§3.18). STATE is part of every row
// and left out.
var table = [numTypes]transitions{
	RC: withExits(transitions{
		Reset: {Init: {true, initConnected, 0}},
		Init: {
			Init: {true, 0, initConnected},
			RTR:  {true, rtrUC | MaskMaxDestRead | MaskMinRNRTimer, rtrConnected},
		},
		RTR: {RTS: {true, MaskTimeout | MaskRetryCount | MaskRNRRetry | MaskSendPSN | MaskMaxRead, liveRC}},
		RTS: {RTS: {true, 0, liveRC}, SQD: {true, 0, MaskSQDNotify}},
		SQD: {RTS: {true, 0, liveRC}, SQD: {true, 0, quietRC}},
	}),
	UC: withExits(transitions{
		Reset: {Init: {true, initConnected, 0}},
		Init:  {Init: {true, 0, initConnected}, RTR: {true, rtrUC, rtrConnected}},
		RTR:   {RTS: {true, MaskSendPSN, liveUC}},
		RTS:   {RTS: {true, 0, liveUC}, SQD: {true, 0, MaskSQDNotify}},
		SQD:   {RTS: {true, 0, liveUC}, SQD: {true, 0, quietUC}},
		SQE:   {RTS: {true, 0, MaskCurState | MaskAccess}},
	}),
	UD:  datagram(initUD),
	GSI: datagram(initGSI),
}

func datagram(initial AttrMask) transitions {
	return withExits(transitions{
		Reset: {Init: {true, initial, 0}},
		Init:  {Init: {true, 0, initial}, RTR: {true, 0, rtrDatagram}},
		RTR:   {RTS: {true, MaskSendPSN, liveDatagram}},
		RTS:   {RTS: {true, 0, liveDatagram}, SQD: {true, 0, MaskSQDNotify}},
		SQD:   {RTS: {true, 0, liveDatagram}, SQD: {true, 0, rtrDatagram}},
		SQE:   {RTS: {true, 0, liveDatagram}},
	})
}

// withExits adds what every state has: to RESET, and to ERR but from RESET.
func withExits(t transitions) transitions {
	for s := range t {
		t[s][Reset].legal = true
		t[s][Err].legal = State(s) != Reset
	}
	return t
}

// next lists the states that can be reached from s.
func (t *transitions) next(s State) []State {
	var to []State
	for i, row := range t[s] {
		if row.legal {
			to = append(to, State(i))
		}
	}
	return to
}

// CheckTransition reports whether a queue pair of type t may go from one state to
// another with the attributes of mask (STATE does not matter), by a *[StateError]
// or *[AttrError].
func CheckTransition(t Type, from, to State, mask AttrMask) error {
	if int(t) >= numTypes || int(from) >= numStates || int(to) >= numStates {
		return &StateError{Op: "modify", State: from, To: to, transition: true}
	}
	row := table[t][from][to]
	if !row.legal {
		return &StateError{Op: "modify", State: from, To: to, transition: true, Allowed: table[t].next(from)}
	}
	mask &^= MaskState
	missing := row.required &^ mask
	excess := mask &^ (row.required | row.optional)
	if missing != 0 || excess != 0 {
		return &AttrError{From: from, To: to, Missing: missing, NotAllowed: excess}
	}
	return nil
}
