package bench

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Sentinels that errors of this package unwrap to.
var (
	// ErrFlag: an option that cannot work.
	ErrFlag = errors.New("bench: bad option")
	// ErrVerify: bytes arrived that are not the ones sent.
	ErrVerify = errors.New("bench: verification failed")
	// ErrPeer: the peer died, closed its control connection or refused.
	ErrPeer = errors.New("bench: peer failed")
	// ErrStall: a timed part stood still.
	ErrStall = errors.New("bench: nothing moves")
)

// FlagError is an option that cannot work. It unwraps to [ErrFlag].
type FlagError struct {
	// Flag is its name without dashes, "" of what is no flag, Given what was asked for.
	Flag, Given string
	// Allowed says what can work, Do what to do about it.
	Allowed, Do string
}

// Error says what was given, what is allowed and what to do.
func (e *FlagError) Error() string {
	given := e.Given
	if e.Flag != "" {
		given = "--" + e.Flag + " " + given
	}
	return fmt.Sprintf("%s: allowed: %s; %s", given, e.Allowed, e.Do)
}

// Unwrap returns [ErrFlag].
func (e *FlagError) Unwrap() error { return ErrFlag }

// MismatchError is a byte or a counter that is not what was sent. It unwraps to
// [ErrVerify].
type MismatchError struct {
	// Op and Size name the cell, Round counts from 0.
	Op    string `json:"op"`
	Size  int    `json:"size"`
	Round int    `json:"round"`
	// Side is "requester" or "responder": whose memory it was found in.
	Side string `json:"side"`
	// Offset is into that side's destination region.
	Offset int `json:"offset"`
	// Want and Got are the bytes, unless Detail says more.
	Want byte `json:"want"`
	Got  byte `json:"got"`
	// Stale: the bytes are those of the lap before.
	Stale bool `json:"stale,omitempty"`
	// Detail describes a wrong counter, immediate or length.
	Detail string `json:"detail,omitempty"`
}

// Error names operation, size, place, what was expected and what was found.
func (m *MismatchError) Error() string {
	s := fmt.Sprintf("verification failed: %s of %d bytes, round %d, %s's memory: ", m.Op, m.Size, m.Round+1, m.Side)
	if m.Detail != "" {
		return s + m.Detail
	}
	s += fmt.Sprintf("offset %#x: want %#02x, got %#02x", m.Offset, m.Want, m.Got)
	if m.Stale {
		s += " (the bytes of the lap before: the last message did not arrive)"
	}
	return s
}

// Unwrap returns [ErrVerify].
func (m *MismatchError) Unwrap() error { return ErrVerify }

// PeerError is a peer that died or hung up. It unwraps to [ErrPeer] and to Err.
type PeerError struct {
	// Addr is the peer's RoCE address, zero before it was known.
	Addr netip.Addr
	// PID is the child's process id; 0 when the peer is no child of this process.
	PID int
	// Err says how it ended.
	Err error
	// Stderr is the end of what a child wrote to its standard error.
	Stderr string
}

// Error names the peer, how it ended and the last words of a child.
func (e *PeerError) Error() string {
	s := "peer"
	if e.PID != 0 {
		s += fmt.Sprintf(" process %d", e.PID)
	}
	if e.Addr.IsValid() {
		s += fmt.Sprintf(" (%s)", e.Addr)
	}
	s += fmt.Sprintf(": %v", e.Err)
	if e.Stderr != "" {
		s += "; its last words: " + e.Stderr
	}
	return s
}

// Unwrap returns [ErrPeer] and the cause.
func (e *PeerError) Unwrap() []error { return []error{ErrPeer, e.Err} }

// StallError is a timed part that stood still. It unwraps to [ErrStall].
type StallError struct {
	// For is how long.
	For time.Duration
	// Messages and Packets are what had moved until then: messages completed, and
	// packets of requests that were acknowledged or answered.
	Messages, Packets uint64
}

// Error says what stood still, where and for how long.
func (e *StallError) Error() string {
	return fmt.Sprintf("nothing moved for %v: no message completed after %d, and no packet was acknowledged after %d",
		e.For.Round(time.Second), e.Messages, e.Packets)
}

// Unwrap returns [ErrStall].
func (e *StallError) Unwrap() error { return ErrStall }

// ForeignError is a foreign program that failed, or whose output was not
// understood. It unwraps to Err.
type ForeignError struct {
	// Program is the executable, Err what happened.
	Program string
	Err     error
}

// Error names the program and the cause.
func (e *ForeignError) Error() string { return e.Program + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ForeignError) Unwrap() error { return e.Err }

// CellError says in which cell a run failed. It unwraps to Err.
type CellError struct {
	// Op and Size name the cell.
	Op   string
	Size int
	// Err is what happened.
	Err error
}

// Error names the cell and the cause.
func (e *CellError) Error() string { return fmt.Sprintf("%s of %d bytes: %v", e.Op, e.Size, e.Err) }

// Unwrap returns the cause.
func (e *CellError) Unwrap() error { return e.Err }
