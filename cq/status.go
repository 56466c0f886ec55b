package cq

import "fmt"

// Status says how a work request ended. Numbers and names are those of verbs
// (ibv_wc_status, §3.16). It is no error by itself: see Completion.Err.
type Status uint8

// The statuses.
const (
	StatusSuccess          Status = 0
	StatusLocalLength      Status = 1
	StatusLocalQPOperation Status = 2
	StatusLocalEECOp       Status = 3 // RD only, never made here
	StatusLocalProtection  Status = 4
	StatusFlushed          Status = 5
	StatusBindError        Status = 6 // memory windows only, never made here
	StatusBadResponse      Status = 7
	StatusLocalAccess      Status = 8
	StatusRemoteInvalid    Status = 9
	StatusRemoteAccess     Status = 10
	StatusRemoteOperation  Status = 11
	StatusRetryExceeded    Status = 12
	StatusRNRRetryExceeded Status = 13
	StatusLocalRDDomain    Status = 14 // RD only, never made here
	StatusRemoteInvalidRD  Status = 15
	StatusRemoteAborted    Status = 16
	StatusInvalidEECN      Status = 17 // RD only, never made here
	StatusInvalidEECState  Status = 18 // RD only, never made here
	StatusFatal            Status = 19
	StatusResponseTimeout  Status = 20
	StatusGeneral          Status = 21
)

// statusInfo is everything that is said about a status.
type statusInfo struct {
	name     string // as ibv_wc_status_str has it
	verbs    string // suffix of the verbs constant
	sentinel error
	advice   string
}

// String is the verbs name in words, such as "remote access error".
func (s Status) String() string {
	if int(s) < len(statuses) {
		return statuses[s].name
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// Verbs is the name of the verbs constant, such as "IBV_WC_REM_ACCESS_ERR".
func (s Status) Verbs() string {
	if int(s) < len(statuses) {
		return "IBV_WC_" + statuses[s].verbs
	}
	return s.String()
}

// Sentinel is the error that an error of this status unwraps to; nil for
// StatusSuccess, ErrGeneral for a number that verbs does not have.
func (s Status) Sentinel() error {
	if int(s) < len(statuses) {
		return statuses[s].sentinel
	}
	return ErrGeneral
}

// Advice says what usually causes the status and what to do.
func (s Status) Advice() string {
	if int(s) < len(statuses) {
		return statuses[s].advice
	}
	return ""
}
