package cm

import "fmt"

// Reason says why a REJ refuses (§5.4 REJ).
type Reason uint16

// The reasons. What additional information they bring is in parentheses.
const (
	ReasonNoQP               Reason = 1
	ReasonNoEEC              Reason = 2
	ReasonNoResources        Reason = 3
	ReasonTimeout            Reason = 4 // (the sender's 8-byte CA GUID)
	ReasonUnsupported        Reason = 5
	ReasonCommID             Reason = 6
	ReasonCommInstance       Reason = 7
	ReasonServiceID          Reason = 8 // nobody listens
	ReasonTransport          Reason = 9
	ReasonStale              Reason = 10
	ReasonNoRDC              Reason = 11
	ReasonGID                Reason = 12 // (a GID)
	ReasonLID                Reason = 13
	ReasonSL                 Reason = 14
	ReasonTrafficClass       Reason = 15
	ReasonHopLimit           Reason = 16
	ReasonRate               Reason = 17
	ReasonAltGID             Reason = 18
	ReasonAltLID             Reason = 19
	ReasonAltSL              Reason = 20
	ReasonAltTrafficClass    Reason = 21
	ReasonAltHopLimit        Reason = 22
	ReasonAltRate            Reason = 23
	ReasonRedirectPortCM     Reason = 24 // (ClassPortInfo)
	ReasonRedirectPort       Reason = 25 // (the new GID)
	ReasonMTU                Reason = 26 // (the acceptable MTU)
	ReasonResponderResources Reason = 27
	ReasonConsumer           Reason = 28 // the application said no; private data is its own
	ReasonRNRRetry           Reason = 29
	ReasonDuplicateID        Reason = 30
	ReasonClassVersion       Reason = 31
	ReasonFlowLabel          Reason = 32
	ReasonAltFlowLabel       Reason = 33
	ReasonVendorOption       Reason = 35
)

var reasonNames = [...]string{
	ReasonNoQP:               "no QP available",
	ReasonNoEEC:              "no EEC available",
	ReasonNoResources:        "no resources",
	ReasonTimeout:            "timeout",
	ReasonUnsupported:        "unsupported request",
	ReasonCommID:             "invalid communication id",
	ReasonCommInstance:       "invalid communication instance",
	ReasonServiceID:          "invalid service id, nobody listens there",
	ReasonTransport:          "invalid transport service type",
	ReasonStale:              "stale connection",
	ReasonNoRDC:              "RDC does not exist",
	ReasonGID:                "invalid primary GID",
	ReasonLID:                "invalid LID",
	ReasonSL:                 "invalid SL",
	ReasonTrafficClass:       "invalid traffic class",
	ReasonHopLimit:           "invalid hop limit",
	ReasonRate:               "invalid packet rate",
	ReasonAltGID:             "invalid alternate GID",
	ReasonAltLID:             "invalid alternate LID",
	ReasonAltSL:              "invalid alternate SL",
	ReasonAltTrafficClass:    "invalid alternate traffic class",
	ReasonAltHopLimit:        "invalid alternate hop limit",
	ReasonAltRate:            "invalid alternate packet rate",
	ReasonRedirectPortCM:     "port and CM redirect",
	ReasonRedirectPort:       "port redirect",
	ReasonMTU:                "invalid path MTU",
	ReasonResponderResources: "insufficient responder resources",
	ReasonConsumer:           "consumer reject",
	ReasonRNRRetry:           "invalid RNR retry count",
	ReasonDuplicateID:        "duplicate local communication id",
	ReasonClassVersion:       "invalid class version",
	ReasonFlowLabel:          "invalid flow label",
	ReasonAltFlowLabel:       "invalid alternate flow label",
	ReasonVendorOption:       "vendor option not supported",
}

// String returns the reason in words, with its number.
func (r Reason) String() string {
	if int(r) >= len(reasonNames) || reasonNames[r] == "" {
		return fmt.Sprintf("reason %d", uint16(r))
	}
	return fmt.Sprintf("%s (%d)", reasonNames[r], uint16(r))
}
