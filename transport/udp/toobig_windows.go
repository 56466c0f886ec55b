package udp

import (
	"errors"

	"golang.org/x/sys/windows"
)

func isTooBig(err error) bool { return errors.Is(err, windows.WSAEMSGSIZE) }
