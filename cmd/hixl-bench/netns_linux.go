package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport/xdp/veth"
)

// insideEnv tells the program that it runs in the first of the two namespaces; the
// second is descriptor thereFD.
const (
	insideEnv = "HIXL_BENCH_NETNS"
	thereFD   = 3
)

func inside() bool { return os.Getenv(insideEnv) != "" }

// exitError is how the run in the namespaces ended, which it has explained itself.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// runInside runs this program again, with its arguments, in the first of two new
// namespaces. The namespaces have no name: when the processes in them are gone, by
// whatever cause, so are they and their links.
func runInside(ctx context.Context, mtu int) error {
	p, err := veth.New(veth.Config{MTU: mtu})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return errors.Join(err, p.Close())
	}
	fd, err := unix.FcntlInt(uintptr(p.Namespace(1)), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	there := os.NewFile(uintptr(fd), "namespace")
	defer there.Close()
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{there}
	// A group of its own: an interrupt reaches it through us, once. It dies with us,
	// or rather with the thread that starts it, which waits for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	err = p.Do(0, func() error {
		if err := cmd.Start(); err != nil {
			return err
		}
		defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(os.Interrupt) })()
		return cmd.Wait()
	})
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		err = exitError(exit.ExitCode())
	}
	return errors.Join(err, p.Close())
}

// startThere calls start on a thread in the second namespace. The thread stays:
// what it starts dies with it.
func startThere(start func() error) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(thereFD, unix.CLONE_NEWNET); err != nil {
			started <- fmt.Errorf("entering the peer's network namespace: %w", err)
			return
		}
		started <- start()
		select {} // to the end of the process
	}()
	return <-started
}
