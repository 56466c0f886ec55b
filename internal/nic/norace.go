//go:build !race

package nic

func beforeSend()   {}
func afterReceive() {}
