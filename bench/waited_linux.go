package bench

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// processWaited is how long the threads of this process have waited for a processor:
// the second number of their schedstat. That of a thread that has ended is lost.
func processWaited() (sum time.Duration) {
	const tasks = "/proc/self/task"
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return 0
	}
	for _, t := range threads {
		b, err := os.ReadFile(tasks + "/" + t.Name() + "/schedstat")
		if err != nil {
			continue // it has ended, or the kernel keeps none
		}
		if f := strings.Fields(string(b)); len(f) > 1 {
			ns, _ := strconv.ParseInt(f[1], 10, 64) // 0 when it is not a number
			sum += time.Duration(ns)
		}
	}
	return sum
}
