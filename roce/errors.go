package roce

import (
	"errors"
	"fmt"
)

// What an error of this package unwraps to.
var (
	// ErrTruncated: fewer bytes than the header says or needs.
	ErrTruncated = errors.New("roce: truncated")
	// ErrOpcode: an opcode that no packet we take may have.
	ErrOpcode = errors.New("roce: unknown opcode")
	// ErrVersion: a transport or IP version that is not ours.
	ErrVersion = errors.New("roce: wrong version")
	// ErrLength: lengths that contradict each other or a rule of the opcode.
	ErrLength = errors.New("roce: wrong length")
	// ErrMTU: a size that is no path MTU.
	ErrMTU = errors.New("roce: no such path MTU")
)

// DecodeError says why bytes are not a packet. It unwraps to [ErrTruncated],
// [ErrOpcode], [ErrVersion] or [ErrLength]. The values that [Packet.Decode]
// returns are made once and shared, so a flood of bad packets allocates nothing.
type DecodeError struct {
	Reason error  // the sentinel
	Opcode Opcode // the packet's first byte; 0 when it is too short to have one
	Need   int    // for ErrTruncated and ErrLength: the least UDP payload that could be right, in bytes
}

func (e *DecodeError) Error() string {
	switch {
	case errors.Is(e.Reason, ErrOpcode):
		if e.Opcode.Transport() == RD {
			return fmt.Sprintf("roce: opcode %#02x (%v): reliable datagram is obsolete and dropped", uint8(e.Opcode), e.Opcode)
		}
		return fmt.Sprintf("roce: unknown opcode %#02x", uint8(e.Opcode))
	case errors.Is(e.Reason, ErrVersion):
		return "roce: transport header version is not 0"
	case errors.Is(e.Reason, ErrLength):
		return fmt.Sprintf("roce: %v: pad count leaves no room, %d bytes are needed", e.Opcode, e.Need)
	}
	if e.Need == minPacket {
		return fmt.Sprintf("roce: truncated: a packet has at least %d bytes of transport header and ICRC", minPacket)
	}
	return fmt.Sprintf("roce: truncated: %v has at least %d bytes of headers and ICRC", e.Opcode, e.Need)
}

// Unwrap returns the sentinel.
func (e *DecodeError) Unwrap() error { return e.Reason }

var (
	errRunt    = &DecodeError{Reason: ErrTruncated, Need: minPacket}
	errVersion = &DecodeError{Reason: ErrVersion}
	errsOf     = makeDecodeErrors()
)

type opcodeErrors struct{ unknown, truncated, pad DecodeError }

func makeDecodeErrors() *[256]opcodeErrors {
	all := new([256]opcodeErrors)
	for i := range all {
		op := Opcode(i)
		need := BTHLen + op.HeaderLen() + ICRCLen
		all[i] = opcodeErrors{
			unknown:   DecodeError{Reason: ErrOpcode, Opcode: op},
			truncated: DecodeError{Reason: ErrTruncated, Opcode: op, Need: need},
			pad:       DecodeError{Reason: ErrLength, Opcode: op, Need: need},
		}
	}
	return all
}
