package hostinfo

// platformChecks tries the parts of the fast path that Linux offers.
func platformChecks() []Check {
	checks := trainChecks()
	checks = append(checks, mmsgCheck())
	checks = append(checks, bufferChecks()...)
	return append(checks, identCheck(), xdpCheck(), hugePageCheck())
}
