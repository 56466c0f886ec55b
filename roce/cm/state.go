package cm

import "fmt"

// State is where a connection is (§5.10).
type State uint8

// The states. Active connections go through the first four, passive ones through
// the next four, both through the last three.
const (
	StateREQSent State = iota + 1
	StateMRAREQReceived
	StateREPReceived
	StateMRAREPSent
	StateREQReceived
	StateMRAREQSent
	StateREPSent
	StateMRAREPReceived
	StateEstablished
	StateDREQSent
	StateTimewait
)

var stateNames = [...]string{
	"", "REQ_SENT", "MRA_REQ_RCVD", "REP_RCVD", "MRA_REP_SENT",
	"REQ_RCVD", "MRA_REQ_SENT", "REP_SENT", "MRA_REP_RCVD",
	"ESTABLISHED", "DREQ_SENT", "TIMEWAIT",
}

// String returns the state as the specification writes it, such as "REP_SENT".
func (s State) String() string {
	if s == 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return stateNames[s]
}

// requested: our REQ waits for its answer.
func (s State) requested() bool { return s == StateREQSent || s == StateMRAREQReceived }

// responded: a REP has come, our application has to confirm.
func (s State) responded() bool { return s == StateREPReceived || s == StateMRAREPSent }

// asked: a REQ has come, our application has to answer.
func (s State) asked() bool { return s == StateREQReceived || s == StateMRAREQSent }

// replied: our REP waits for the RTU.
func (s State) replied() bool { return s == StateREPSent || s == StateMRAREPReceived }
