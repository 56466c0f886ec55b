package pages

import (
	"errors"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// locked is how many KiB of this process are pinned.
func locked(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	m := regexp.MustCompile(`VmLck:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(t, m)
	n, err := strconv.Atoi(string(m[1]))
	require.NoError(t, err)
	return n
}

// What two ranges share stays pinned until both are unpinned.
func TestPin(t *testing.T) {
	b, unmap, err := Map(16 << 12)
	require.NoError(t, err)
	defer func() { require.NoError(t, unmap()) }()
	before := locked(t)
	first, err := Pin(b[100 : 8<<12])
	require.NoError(t, err)
	second, err := Pin(b[4<<12 : 12<<12])
	require.NoError(t, err)
	require.Equal(t, before+12*4, locked(t))
	first()
	require.Equal(t, before+8*4, locked(t))
	second()
	require.Equal(t, before, locked(t))
}

// Without the right to pin more, the error says which limit it was.
func TestPinLimit(t *testing.T) {
	done := make(chan struct{})
	go func() { // on a thread of its own, which ends with it
		defer close(done)
		runtime.LockOSThread()
		h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var caps [2]unix.CapUserData
		if unix.Capget(&h, &caps[0]) == nil {
			caps[0].Effective &^= 1 << unix.CAP_IPC_LOCK
			if err := unix.Capset(&h, &caps[0]); err != nil {
				t.Error(err)
				return
			}
		}
		var was unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &was); err != nil {
			t.Error(err)
			return
		}
		low := was
		low.Cur = min(64<<10, was.Max)
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &low); err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &was) }()
		_, err := Pin(make([]byte, 1<<20))
		e := (*PinError)(nil)
		if !errors.As(err, &e) || !e.Limited || e.Limit != low.Cur || !regexp.MustCompile("1048576 bytes.*RLIMIT_MEMLOCK.*65536").MatchString(err.Error()) && low.Cur == 64<<10 {
			t.Errorf("%v", err)
		}
	}()
	<-done
}
