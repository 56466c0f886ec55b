//go:build race

package hostiletest

// One goroutine steps everything; what the race detector looks for is elsewhere.
const (
	defaultPackets       = 60_000
	defaultSocketPackets = 4_000
)
