//go:build ascend

package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/gohixl/hixl/device/ascend"
	"github.com/gohixl/hixl/internal/hostinfo"
)

// deviceChecks says what of the Ascend runtime this host has.
func deviceChecks() []hostinfo.Check {
	c := ascend.Config{Library: os.Getenv("HIXL_ASCEND_LIBRARY"), Driver: os.Getenv("HIXL_ASCEND_DRIVER")}
	if s := os.Getenv("HIXL_ASCEND_DEVICE"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			return []hostinfo.Check{{
				Name: "ascend_runtime", State: hostinfo.Missing, Value: fmt.Sprintf("HIXL_ASCEND_DEVICE is %q", s),
				Cost: "no device memory; everything else works", Remedy: "give the number of a device",
			}}
		}
		c.Device = n
	}
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
