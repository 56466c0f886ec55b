//go:build !race

package hostiletest

const (
	defaultPackets       = 1_000_000
	defaultSocketPackets = 100_000
)
