package mono

import "time"

// Time is a point in nanoseconds on a monotonic clock of the caller's choice.
// The zero value means "never" or "not set"; clocks start above it.
type Time int64

// Add returns t moved by d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Before reports whether t is earlier than u. Neither may be the zero value's
// "never"; test with IsZero first.
func (t Time) Before(u Time) bool { return t < u }

// IsZero reports whether t is not set.
func (t Time) IsZero() bool { return t == 0 }

// Earliest returns the earlier of two times of which either may be unset.
func Earliest(a, b Time) Time {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
