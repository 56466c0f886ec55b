//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// insideEnv tells the program that it runs in the lab's namespaces.
const insideEnv = "HIXL_LAB_INSIDE"

// Inside reports whether this process is the first of a lab's namespaces.
func Inside() bool { return os.Getenv(insideEnv) != "" && os.Getpid() == 1 }

// Reexec runs this program again, with its arguments, inside new namespaces for
// network, processes and mounts, and returns its exit status. When this process
// ends, by whatever cause, the kernel ends that one and with it everything that
// was started there; the namespaces go with the last of them. It is to be called
// from the main goroutine, once.
func Reexec() (int, error) {
	if os.Geteuid() != 0 {
		return 1, fmt.Errorf("%w: it needs root", ErrSetup)
	}
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	// The death signal comes when the thread ends that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if code := exit.ExitCode(); code >= 0 {
			return code, nil
		}
		return 1, fmt.Errorf("lab: ended by %w", err)
	}
	return 0, err
}
