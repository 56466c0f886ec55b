package nic_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/gohixl/hixl/device"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type doneChan chan error

func (d doneChan) MemoryDone(_ uint64, err error) { d <- err }

func vec(off uint64, b []byte) []device.Vec { return []device.Vec{{Off: off, B: b}} }
