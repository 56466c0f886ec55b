package roce

import "fmt"

// CheckLength checks payload and pad against the opcode's rule for a path MTU
// in bytes: exactly the MTU for First and Middle, 1 to the MTU for Last, 0 to
// it for Only, 8 for ATOMIC WRITE, none for the rest; pad to a multiple of 4
// (§1.9, §9.1 R11). What fails it is a *[LengthError], which a responder answers
// with a NAK invalid request. For UD give the port's MTU.
func (p *Packet) CheckLength(mtu int) error {
	n, ok := len(p.Payload), false
	rule := opcodes[p.Opcode].payload
	switch rule {
	case PayloadNone:
		ok = n == 0
	case PayloadFull:
		ok = n == mtu
	case PayloadSome:
		ok = n >= 1 && n <= mtu
	case PayloadAny:
		ok = n <= mtu
	case PayloadEight:
		ok = n == 8
	}
	if ok && int(p.Pad) == -n&3 {
		return nil
	}
	return &LengthError{Opcode: p.Opcode, Payload: n, Pad: int(p.Pad), MTU: mtu}
}

// LengthError says that a packet's payload or pad breaks its opcode's rule. It
// unwraps to [ErrLength].
type LengthError struct {
	Opcode  Opcode
	Payload int // bytes
	Pad     int // pad count
	MTU     int // path MTU in bytes
}

func (e *LengthError) Error() string {
	want := "no payload"
	switch e.Opcode.Payload() {
	case PayloadNone:
	case PayloadFull:
		want = fmt.Sprintf("exactly %d bytes", e.MTU)
	case PayloadSome:
		want = fmt.Sprintf("1 to %d bytes", e.MTU)
	case PayloadAny:
		want = fmt.Sprintf("0 to %d bytes", e.MTU)
	case PayloadEight:
		want = "exactly 8 bytes"
	}
	return fmt.Sprintf("roce: %v with %d bytes of payload and pad %d: the opcode takes %s, padded to a multiple of 4",
		e.Opcode, e.Payload, e.Pad, want)
}

// Unwrap returns [ErrLength].
func (e *LengthError) Unwrap() error { return ErrLength }
