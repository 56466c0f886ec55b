package hostinfo

import (
	"runtime"
)

// State is what a probe found.
type State string

// What a probe can find.
const (
	OK      State = "ok"      // there, and enough of it
	Limited State = "limited" // there, but less than the stack can use
	Missing State = "missing" // not there
	Unknown State = "unknown" // could not be tried; Value says why
)

// Check is the answer to one question about the host.
type Check struct {
	Name   string `json:"name"`             // stable key, such as "udp_gso"
	State  State  `json:"state"`            // what was found
	Value  string `json:"value"`            // what was found, for a reader
	Cost   string `json:"cost,omitempty"`   // what its lack costs; empty when State is OK
	Remedy string `json:"remedy,omitempty"` // how to get it; empty when State is OK
}

// System names the machine the report is about.
type System struct {
	OS     string `json:"os"`     // GOOS
	Arch   string `json:"arch"`   // GOARCH
	Kernel string `json:"kernel"` // its release, or empty where it cannot be asked
	Go     string `json:"go"`     // version of the Go runtime in this program
	Cores  int    `json:"cores"`  // that this process may use
}

// Report is what one host offers.
type Report struct {
	System     System      `json:"system"`
	Checks     []Check     `json:"checks"`
	Interfaces []Interface `json:"interfaces"`
}

// Probe tries everything once and reports. It takes well under a second and
// needs no privilege; what it could not try for want of one is [Unknown].
func Probe() *Report {
	checks := []Check{coresCheck(runtime.GOMAXPROCS(0))}
	checks = append(checks, platformChecks()...)
	checks = append(checks, portChecks()...)
	checks = append(checks, ipv6Check(), cpuCheck())
	return &Report{
		System: System{
			OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: kernelRelease(),
			Go: runtime.Version(), Cores: runtime.GOMAXPROCS(0),
		},
		Checks:     checks,
		Interfaces: interfaces(),
	}
}

// Check returns the check of a name, or false.
func (r *Report) Check(name string) (Check, bool) {
	for _, c := range r.Checks {
		if c.Name == name {
			return c, true
		}
	}
	return Check{}, false
}

// needs completes a check that found less than enough.
func (c Check) needs(state State, cost, remedy string) Check {
	c.State, c.Cost, c.Remedy = state, cost, remedy
	return c
}
