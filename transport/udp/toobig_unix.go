//go:build !windows

package udp

import (
	"errors"
	"syscall"
)

func isTooBig(err error) bool { return errors.Is(err, syscall.EMSGSIZE) }
