package cm

import "time"

// maxExponent is the largest value of a 5-bit timeout field.
const maxExponent = 31

// Millis returns the time that a 5-bit timeout exponent stands for, as connection
// managers round it: 2^(t-8) ms, at least 1 ms, for 4.096 µs · 2^t (§5.8).
func Millis(t uint8) time.Duration {
	return time.Millisecond << (max(min(t, maxExponent), 8) - 8)
}

// ACKTimeout returns the exponent of the ACK timeout of a queue pair, from its
// peer's ACK delay and the packet lifetime of the path, both exponents: room for
// two lifetimes and the delay, at most 31 (§5.6).
func ACKTimeout(delay, lifetime uint8) uint8 {
	delay, lifetime = min(delay, maxExponent), min(lifetime, maxExponent)
	t := lifetime + 1
	if t >= delay {
		if delay >= t-1 {
			t++
		}
	} else {
		if t >= delay-1 {
			delay++
		}
		t = delay
	}
	return min(t, maxExponent)
}

// Lifetime returns the packet lifetime exponent of a path whose ACK timeout is
// given: one less, and 0 for 0 (C4).
func Lifetime(ackTimeout uint8) uint8 {
	if ackTimeout == 0 {
		return 0
	}
	return min(ackTimeout, maxExponent) - 1
}
