package roce

import (
	"fmt"
	"time"
)

// Syndrome is the first byte of an AETH: three bits of kind, five of value (§1.8).
type Syndrome uint8

// Whole syndromes. RNR NAKs are built by [RNR], ACKs with credits by [ACK].
const (
	SynACK        Syndrome = 0x1F // acknowledged, credits unlimited
	SynNakSeq     Syndrome = 0x60 // PSN sequence error
	SynNakInvalid Syndrome = 0x61 // invalid request
	SynNakAccess  Syndrome = 0x62 // remote access error
	SynNakOp      Syndrome = 0x63 // remote operational error
	SynNakRD      Syndrome = 0x64 // invalid RD request
)

// AckKind is what the upper three bits of a syndrome say.
type AckKind uint8

// The kinds. A packet with AckReserved is ignored (§1.8).
const (
	AckACK AckKind = iota
	AckRNR
	AckNAK
	AckReserved
)

// String returns "ACK", "RNR", "NAK" or "reserved".
func (k AckKind) String() string {
	switch k {
	case AckACK:
		return "ACK"
	case AckRNR:
		return "RNR"
	case AckNAK:
		return "NAK"
	case AckReserved:
	}
	return "reserved"
}

// Kind returns what the syndrome says. NAK codes above 4 are AckNAK too; see Value.
func (s Syndrome) Kind() AckKind {
	switch s >> 5 {
	case 0:
		return AckACK
	case 1:
		return AckRNR
	case 3:
		return AckNAK
	}
	return AckReserved
}

// Value returns the low five bits: credit code, RNR timer code or NAK code.
func (s Syndrome) Value() uint8 { return uint8(s) & 0x1F }

// RNR returns the receiver-not-ready NAK with an RNR timer code 0..31; higher
// bits of code are dropped.
func RNR(code uint8) Syndrome { return 0x20 | Syndrome(code&0x1F) }

// ACK returns the acknowledgement with a credit code 0..31; higher bits of code
// are dropped.
func ACK(code uint8) Syndrome { return Syndrome(code & 0x1F) }

// Credits returns how many receives beyond the acknowledged message the
// responder has, and whether it said so: false for an unlimited ACK and for
// anything that is no ACK.
func (s Syndrome) Credits() (n int, limited bool) {
	if s.Kind() != AckACK || s.Value() == 31 {
		return 0, false
	}
	return int(creditTable[s.Value()]), true
}

// CreditCode returns the largest credit code 0..30 that promises no more than n
// receives.
func CreditCode(n int) uint8 {
	code := len(creditTable) - 1
	for code > 0 && int(creditTable[code]) > n {
		code--
	}
	return uint8(code)
}

// §1.8, credit codes 0..30.
var creditTable = [31]uint16{
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
}

// §1.8, RNR timer codes 0..31, in units of 10 µs.
var rnrTable = [32]uint32{
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// RNRTimer returns the delay an RNR timer code 0..31 asks for: 10 µs (1) to
// 491.52 ms (31), and 655.36 ms for 0. Higher bits of code are dropped.
func RNRTimer(code uint8) time.Duration {
	return time.Duration(rnrTable[code&0x1F]) * 10 * time.Microsecond
}

// RNRDelay returns how long an RNR NAK asks the requester to wait, and 0 for
// any other syndrome.
func (s Syndrome) RNRDelay() time.Duration {
	if s.Kind() != AckRNR {
		return 0
	}
	return RNRTimer(s.Value())
}

// String returns the meaning, as "ACK credits 31", "RNR 10.24ms" or "NAK remote
// access error".
func (s Syndrome) String() string {
	switch s.Kind() {
	case AckACK:
		return fmt.Sprintf("ACK credits %d", s.Value())
	case AckRNR:
		return fmt.Sprintf("RNR %v", s.RNRDelay())
	case AckNAK:
		if int(s.Value()) < len(nakNames) {
			return "NAK " + nakNames[s.Value()]
		}
		return fmt.Sprintf("NAK reserved code %d", s.Value())
	case AckReserved:
	}
	return "reserved"
}

var nakNames = [...]string{
	"PSN sequence error", "invalid request", "remote access error", "remote operational error", "invalid RD request",
}
