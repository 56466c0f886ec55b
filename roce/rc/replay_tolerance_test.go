package rc_test

import (
	"fmt"
	"slices"
)

// tolerance is a way in which this engine differs from the recordings on
// purpose. A recording lists those it needs: nothing else may use one, and one
// that is listed but not needed fails the test, so that none hides a mistake.
type tolerance struct {
	name, rule, section string
}

var (
	shortReceive = &tolerance{
		"short receive",
		"a SEND longer than its receive is an invalid request: NAK 0x61 and local status 1; rxe 6.1 sends 0x63 and has status 2",
		"§4.6, §4.14, Q36",
	}
	readNumbering = &tolerance{
		"READ numbering",
		"the answer of a READ asked for again from its middle begins with First or Only; rxe 6.1 goes on with Middle or Last",
		"§3.13, §4.4, Q34",
	}
	readAtOnce = &tolerance{
		"READ at once",
		"a gap in a READ's answer is repaired at once; rxe waits for its timer. What follows in the recording is played earlier by that much",
		"§3.10, §10",
	}
	acknowledgedResend = &tolerance{
		"acknowledged resend",
		"once resending, what an ACK has covered meanwhile is skipped; rxe resends it",
		"§3.9 (sendPSN moves up to unaPSN)",
	}
	rnrFromPSN = &tolerance{
		"RNR from its PSN",
		"an RNR NAK acknowledges what precedes it, so that sending resumes at its PSN; rxe resumes at the oldest PSN without positive ACK",
		"§3.14, Q35",
	}
	silentDuplicate = &tolerance{
		"silent duplicate",
		"a duplicate SEND or WRITE packet is acknowledged if it asks for it or ends its message; rxe acknowledges every one",
		"§4.4, Q10",
	}
	coalescedACK = &tolerance{
		"coalesced ACK",
		"packets that arrive in one batch get one ACK, and none before a response that implies it; rxe acknowledges each",
		"§4.12",
	}
	probe = &tolerance{
		"probe",
		"after a timeout one packet goes out, with A=1; the rest follows unless the answer covers it. rxe resends everything, A as before",
		"§3.4, §3.12",
	}
	punctual = &tolerance{
		"punctual timer",
		"our timer fires after T; it may take up to 4T, and rxe's had not fired when the ACK came after 91 ms of 67",
		"§3.12 (tool-ib_write_lat)",
	}
	earlyResend = &tolerance{
		"early resend",
		"nothing is resent before the timeout; rxe on emulated CPUs did after 5 to 53 ms of 67",
		"§3.12 (tool-ib_write_lat, tool-ib_send_lat)",
	}

	tolerances = []*tolerance{
		shortReceive, readNumbering, readAtOnce, acknowledgedResend, rnrFromPSN, silentDuplicate, coalescedACK, probe,
		punctual, earlyResend,
	}
)

// allowance is what one recording may use.
type allowance struct {
	list []*tolerance
	used map[*tolerance]bool
}

func allow(list []*tolerance) *allowance { return &allowance{list, map[*tolerance]bool{}} }

// use reports whether the recording has the tolerance, and notes that it was
// needed.
func (a *allowance) use(t *tolerance) bool {
	if !slices.Contains(a.list, t) {
		return false
	}
	a.used[t] = true
	return true
}

// unused is an error for what is listed without need.
func (a *allowance) unused() error {
	for _, t := range a.list {
		if !a.used[t] {
			return fmt.Errorf("tolerance %q is listed but not needed", t.name)
		}
	}
	return nil
}
