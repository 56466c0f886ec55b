//go:build !linux

package pages

import (
	"errors"
	"os"
)

func pageSize() int { return os.Getpagesize() }

func lock(b []byte) error { return &PinError{Len: len(b), Err: errors.ErrUnsupported} }

func unlock(pageRange) {}
