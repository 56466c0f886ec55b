//go:build !race

package nic_test

const defaultSeeds = 1000
