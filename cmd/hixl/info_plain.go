//go:build !ascend

package main

import "github.com/gohixl/hixl/internal/hostinfo"

// deviceChecks is for builds with -tags ascend.
func deviceChecks() []hostinfo.Check { return nil }
