package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes what a run was made on: processor, system, Go.
func Machine() string {
	cpu, kernel := runtime.GOARCH, runtime.GOOS
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.Join(strings.Fields(v), " ")
				break
			}
		}
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		if v := strings.SplitN(string(b), ".", 3); len(v) == 3 {
			kernel += " " + v[0] + "." + v[1]
		}
	}
	return fmt.Sprintf("%d x %s, %s, %s", runtime.NumCPU(), cpu, kernel, runtime.Version())
}
