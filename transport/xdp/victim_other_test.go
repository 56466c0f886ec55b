//go:build !linux

package xdp_test

func victim() {}
