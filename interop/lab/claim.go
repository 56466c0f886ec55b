//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxRuns is how many runs may go on side by side.
const maxRuns = 16

// Claim returns an empty folder beside the image that belongs to this process
// until it ends, for captures and consoles. The first run gets the same one each
// time; what an earlier run left there is removed.
func (i *Image) Claim() (string, error) {
	for n := 1; n <= maxRuns; n++ {
		dir := filepath.Join(filepath.Dir(i.Initramfs), fmt.Sprintf("run-%d", n))
		taken, err := lock(dir + ".lock")
		if err != nil {
			return "", err
		}
		if taken {
			return dir, errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755))
		}
	}
	return "", fmt.Errorf("%w: %d runs are going on", ErrSetup, maxRuns)
}

// lock takes a lock that lasts as long as the process, if nobody has it.
func lock(path string) (taken bool, err error) {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, unix.Close(fd)
	}
	return err == nil, err // the descriptor stays open
}

// exclusively runs f while no other process prepares anything.
func (s *store) exclusively(f func() error) error {
	fd, err := unix.Open(s.path("lock"), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // which unlocks
	if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
		return err
	}
	return f()
}
