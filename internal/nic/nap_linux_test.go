package nic

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// On one processor, what a batch has made ready runs before the nap, not after it.
func TestNapLetsOthersGoFirst(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var ran atomic.Bool
	go ran.Store(true)
	nap(gatherFor)
	require.True(t, ran.Load())
}
