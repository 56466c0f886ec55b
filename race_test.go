//go:build race

package hixl_test

const raceOn = true
