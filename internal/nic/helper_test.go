package nic_test

import (
	"testing"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.VerifyTestMain(m) }

type doneChan chan error

func (d doneChan) MemoryDone(_ uint64, err error) { d <- err }

func vec(off uint64, b []byte) []device.Vec { return []device.Vec{{Off: off, B: b}} }
