//go:build ascend

package main

import (
	"os"
	"strconv"

	"github.com/gohixl/hixl/device/ascend"
	"github.com/gohixl/hixl/internal/hostinfo"
)

// deviceChecks says what of the Ascend runtime this host has.
func deviceChecks() []hostinfo.Check {
	c := ascend.Config{Library: os.Getenv("HIXL_ASCEND_LIBRARY"), Driver: os.Getenv("HIXL_ASCEND_DRIVER")}
	c.Device, _ = strconv.Atoi(os.Getenv("HIXL_ASCEND_DEVICE"))
	var checks []hostinfo.Check
	for _, f := range ascend.Examine(c) {
		state := hostinfo.Missing
		switch {
		case f.OK:
			state = hostinfo.OK
		case f.Limited:
			state = hostinfo.Limited
		}
		checks = append(checks, hostinfo.Check{Name: f.Name, State: state, Value: f.Value, Cost: f.Cost, Remedy: f.Remedy})
	}
	return checks
}
