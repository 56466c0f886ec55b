//go:build !linux

package main

import (
	"context"
	"fmt"

	"github.com/gohixl/hixl/transport/xdp/veth"
)

func inside() bool { return false }

// exitError is how a run elsewhere ended; there is none on this system.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func runInside(context.Context, int) error { return veth.ErrUnsupported }

func startThere(func() error) error { return veth.ErrUnsupported }
