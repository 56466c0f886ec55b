//go:build !linux && !darwin && !freebsd && !windows

package udp

// Without a known option the flag is the system's choice.
func dontFragment(uintptr, bool) error { return nil }
