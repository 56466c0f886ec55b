package bench

import "syscall"

// childAttr gives the child a process group of its own, so that Ctrl-C reaches
// this process alone and the child leaves in order, and a signal for when this
// process dies without closing anything.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
