//go:build unix

package hosttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// takeTurn waits until no other test, of whichever process of this user, has the
// turn called name, and keeps it until the test ends.
func takeTurn(t testing.TB, name string) {
	t.Helper()
	path := filepath.Join(os.TempDir(), fmt.Sprintf("hixl-test-%s-%d", name, os.Getuid()))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // which lets it go
}
