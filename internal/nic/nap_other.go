//go:build !linux

package nic

import (
	"runtime"
	"time"
)

func nap(time.Duration) { runtime.Gosched() }
