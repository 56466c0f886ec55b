package hostinfo

import (
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"
)

// feature is a CPU feature that makes the ICRC cheap.
type feature struct {
	name string
	have bool
}

// cpuFeatures lists what matters on a processor family, the least first.
func cpuFeatures(arch string) []feature {
	switch arch {
	case "amd64", "386":
		return []feature{
			{"PCLMULQDQ", cpu.X86.HasPCLMULQDQ},
			{"AVX-512F", cpu.X86.HasAVX512F},
			{"AVX-512BW", cpu.X86.HasAVX512BW},
			{"AVX-512VL", cpu.X86.HasAVX512VL},
			{"VPCLMULQDQ", cpu.X86.HasAVX512VPCLMULQDQ},
		}
	case "arm64":
		return []feature{{"CRC32", cpu.ARM64.HasCRC32}, {"PMULL", cpu.ARM64.HasPMULL}}
	default:
		return nil
	}
}

func cpuCheck() Check { return judgeCPU(runtime.GOARCH, cpuFeatures(runtime.GOARCH)) }

// judgeCPU weighs features: the first of a family carries the ICRC, the rest
// make it faster.
func judgeCPU(arch string, features []feature) Check {
	var have, lack []string
	for _, f := range features {
		if f.have {
			have = append(have, f.name)
		} else {
			lack = append(lack, f.name)
		}
	}
	c := Check{Name: "cpu_crc", State: OK, Value: strings.Join(have, " ")}
	if len(features) == 0 {
		c.Value = "no CRC instructions known for " + arch
		return c.needs(Unknown, "the ICRC may run from tables: about 1.3 GB/s a core", "nothing to switch on")
	}
	if len(lack) == 0 {
		return c
	}
	if !features[0].have {
		c.Value = fmt.Sprintf("no %s", features[0].name)
		return c.needs(Missing, "the ICRC runs from tables: about 1.3 GB/s a core, less than the socket path moves",
			"a virtual machine that passes the host's CPU features through")
	}
	c.Value += "; without " + strings.Join(lack, " ")
	return c.needs(Limited, "more time for the ICRC of each byte; it is the smaller part of a transfer",
		"a newer processor, or a virtual machine that passes the host's CPU features through")
}

// coresCheck weighs the number of cores this process may use.
func coresCheck(n int) Check {
	c := Check{Name: "cores", State: OK, Value: fmt.Sprint(n)}
	if n >= 2 {
		return c
	}
	return c.needs(Limited, "two NICs on this host take turns on one core: about 0.65 of the loopback bandwidth, and no spinning receiver",
		"give the process a second core (taskset, the container's CPU limit, GOMAXPROCS)")
}
