//go:build !linux

package bench

import "syscall"

// childAttr has nothing to add here: the end of its standard input tells the
// child that this process is gone.
func childAttr() *syscall.SysProcAttr { return nil }
