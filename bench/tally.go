package bench

import (
	"net/netip"
	"strings"
)

// tally is what a peer remembers of a session, for the note at its end.
type tally struct {
	from   netip.Addr // the requester's RoCE address, zero before hello
	cells  int        // opened, again after a round when a run has many
	rounds int        // verified
	first  error      // the first failure
}

func (t *tally) failed(err error) {
	if t.first == nil {
		t.first = err
	}
}

// result is one line about a session that ended with err on its control
// connection and so many cells open.
func (t *tally) result(err error, open int) string {
	done := plural(t.rounds, "round") + " verified"
	switch {
	case t.first != nil:
		return "failed: " + oneLine(t.first) + "; " + done
	case err != nil:
		return "broke off: " + oneLine(err) + "; " + done
	case open > 0:
		return "the requester left before the end; " + done
	case t.cells == 0:
		return "nothing was asked for"
	default:
		return "finished, " + done
	}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
