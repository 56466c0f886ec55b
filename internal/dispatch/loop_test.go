package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/hosttest"
	"github.com/gohixl/hixl/internal/mono"
)

func TestMain(m *testing.M) { hosttest.VerifyTestMain(m) }

// The function runs at the start, at the times that it names, and when it is kicked.
func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		clock := func() mono.Time { return mono.Time(time.Since(start)) + 1 }
		var at []time.Duration
		l := Start(clock, func(now mono.Time) mono.Time {
			at = append(at, time.Since(start))
			if len(at) < 3 {
				return now.Add(time.Second)
			}
			return 0
		})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, at)
		l.Kick()
		synctest.Wait()
		require.Len(t, at, 4)
		l.Stop()
		l.Kick()
	})
}
