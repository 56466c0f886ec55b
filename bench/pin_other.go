//go:build !linux

package bench

import "errors"

// allowedCores: nothing is pinned here.
func allowedCores() []int { return nil }

func setCores([]int) error { return errors.New("bench: pinning to cores needs Linux") }
