package bench

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// allowedCores are the cores that this process may run on, ascending; none when
// that is not known.
func allowedCores() (out []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(os.Getpid(), &set) != nil {
		return nil
	}
	for i := range maxCore {
		if set.IsSet(i) {
			out = append(out, i)
		}
	}
	return out
}

// setCores moves every thread of this process. A new thread inherits from the one
// that makes it, so it is done when a look finds none that was not moved.
func setCores(cores []int) error {
	set := coreSet(cores)
	moved := map[int]bool{}
	for {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("bench: pinning to cores %s: %w", coreList(cores), err)
		}
		before := len(moved)
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || moved[tid] {
				continue
			}
			if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) { // it may have ended
				return fmt.Errorf("bench: pinning to cores %s: %w", coreList(cores), err)
			}
			moved[tid] = true
		}
		if len(moved) == before {
			return nil
		}
	}
}

// onCores runs f with this thread, which must be locked to its goroutine, on some
// cores; what f starts stays there. No cores: wherever the thread is.
func onCores(cores []int, f func() error) error {
	if len(cores) == 0 {
		return f()
	}
	var before unix.CPUSet
	set := coreSet(cores)
	if err := errors.Join(unix.SchedGetaffinity(0, &before), unix.SchedSetaffinity(0, &set)); err != nil {
		return fmt.Errorf("bench: pinning to cores %s: %w", coreList(cores), err)
	}
	return errors.Join(f(), unix.SchedSetaffinity(0, &before))
}

func coreSet(cores []int) (set unix.CPUSet) {
	for _, c := range cores {
		set.Set(c)
	}
	return set
}
