package bench

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestEveryThreadIsMoved has threads before, and one made after.
func TestEveryThreadIsMoved(t *testing.T) {
	all := allowedCores()
	require.NotEmpty(t, all)
	last := all[len(all)-1:]
	require.NoError(t, setCores(last))
	defer func() { require.NoError(t, setCores(all)) }()
	made := make(chan []int)
	go func() {
		runtime.LockOSThread() // not unlocked: a thread of its own, which ends here
		made <- coresOf(t, unix.Gettid())
	}()
	require.Equal(t, last, <-made)
	tasks, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		require.NoError(t, err)
		if got := coresOf(t, tid); got != nil {
			require.Equal(t, last, got)
		}
	}
}

// coresOf is where a thread may run, nil when it has ended.
func coresOf(t *testing.T, tid int) (out []int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(tid, &set); err != nil {
		require.ErrorIs(t, err, unix.ESRCH)
		return nil
	}
	for i := range maxCore {
		if set.IsSet(i) {
			out = append(out, i)
		}
	}
	return out
}

// TestThreadReturns holds what is started, and not this thread after it.
func TestThreadReturns(t *testing.T) {
	all := allowedCores()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, onCores(all[:1], func() error {
		require.Equal(t, all[:1], coresOf(t, unix.Gettid()))
		return nil
	}))
	require.Equal(t, all, coresOf(t, unix.Gettid()))
	require.ErrorContains(t, onCores([]int{maxCore - 1}, func() error { return nil }), "pinning to cores 1023")
}
