package qp

import "fmt"

// State is the state of a queue pair, with the verbs number (§3.18).
type State uint8

// The states.
const (
	Reset State = 0
	Init  State = 1
	RTR   State = 2 // ready to receive: requests are served and answered
	RTS   State = 3 // ready to send
	SQD   State = 4 // send queue draining or drained
	SQE   State = 5 // send queue error, UC and UD only
	Err   State = 6

	numStates = 7
)

var stateNames = [numStates]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

// String returns the verbs name, such as "RTS".
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// stateRules says what a state allows (§3.18).
type stateRules struct {
	postRecv, postSend bool // in Err both are accepted and flushed
	requests           bool // incoming requests are served
	responses          bool // incoming responses count
}

var rules = [numStates]stateRules{
	Reset: {},
	Init:  {postRecv: true},
	RTR:   {postRecv: true, requests: true},
	RTS:   {postRecv: true, postSend: true, requests: true, responses: true},
	SQD:   {postRecv: true, postSend: true, requests: true, responses: true},
	SQE:   {postRecv: true, postSend: true, requests: true},
	Err:   {postRecv: true, postSend: true},
}

// Type is the service of a queue pair.
type Type uint8

// The types. Only RC queue pairs can be made here; the others have their
// transitions in the table.
const (
	RC Type = iota
	UC
	UD
	GSI

	numTypes = 4
)

// String returns "RC", "UC", "UD" or "GSI".
func (t Type) String() string {
	switch t {
	case RC:
		return "RC"
	case UC:
		return "UC"
	case UD:
		return "UD"
	case GSI:
		return "GSI"
	default:
		return fmt.Sprintf("type %d", uint8(t))
	}
}
