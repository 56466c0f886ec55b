//go:build unix

package bench

import "syscall"

// processStrain is what this process has met so far.
func processStrain() Strain {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return Strain{}
	}
	return Strain{
		MinorFaults: uint64(ru.Minflt), MajorFaults: uint64(ru.Majflt),
		Switches: uint64(ru.Nvcsw), Preempted: uint64(ru.Nivcsw), Waited: processWaited(),
	}
}
