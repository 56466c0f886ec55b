package device

import "fmt"

// CheckCopy returns an *ArgumentError for a copy without a direction, or with
// both kinds of source, or nil. Drivers call it before they do anything.
func CheckCopy(c *Copy) error {
	switch {
	case c.Dir < In || c.Dir > Within:
		return &ArgumentError{Call: "Copy", What: fmt.Sprintf("direction %d", c.Dir), Allowed: "In, Out or Within"}
	case c.Dir == Within && len(c.Host) > 0:
		return &ArgumentError{Call: "Copy", What: "a host buffer for a copy within the device", Allowed: "From and Len"}
	case c.Dir != Within && c.Len != 0:
		return &ArgumentError{Call: "Copy", What: fmt.Sprintf("Len %d for a copy %v", c.Len, c.Dir), Allowed: "the length by Host alone"}
	}
	return nil
}

// CheckWord returns an *AlignError for a word that is not 8-byte aligned, or nil.
func CheckWord(addr Addr) error {
	if addr%WordSize != 0 {
		return &AlignError{Addr: uint64(addr)}
	}
	return nil
}
