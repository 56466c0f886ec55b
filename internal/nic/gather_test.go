package nic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/transport"
)

// gathering is a receiver of which only the naps are tried, and its clock.
func gathering() (*receiver, *mono.Time) {
	now := mono.Time(1)
	n := &NIC{clock: func() mono.Time { return now }}
	r := &receiver{nic: n, bytes: bulk + 1}
	r.gather.on = true
	return r, &now
}

// While it is not known what follows, naps go on for as long as enough has come during
// each, and those in vain become rarer and rarer, down to one in gatherSkip batches.
func TestNapsThatPay(t *testing.T) {
	r, _ := gathering()
	for range 3 {
		require.True(t, r.naps())
		r.gather.took(gatherLeast)
	}
	for want := 1; want <= gatherSkip; want *= 2 {
		require.True(t, r.naps())
		r.gather.took(gatherLeast - 1)
		for i := range want {
			require.False(t, r.naps(), "batch %d after a nap in vain", i)
			r.gather.took(bulk + 1)
		}
	}
	require.True(t, r.naps())
	r.gather.took(0)
	require.Equal(t, gatherSkip, r.gather.skip, "never rarer")
	for range gatherSkip {
		require.False(t, r.naps())
	}
	require.True(t, r.naps())
	r.gather.took(gatherLeast)
	require.True(t, r.naps(), "one that pays is enough")
}

// The rest of a long message is worth a nap whatever became of others, which learn
// nothing from it.
func TestNapsInsideAMessage(t *testing.T) {
	r, _ := gathering()
	r.gather.skip, r.gather.vain = 5, 5
	r.gather.coming = gatherSure
	require.True(t, r.naps())
	r.gather.took(1)
	require.Equal(t, 5, r.gather.skip)
	require.Equal(t, 5, r.gather.vain)
	r.gather.coming = gatherSure - 1
	require.False(t, r.naps())
}

// No nap after messages, nor while packets are missed, nor where it is switched off.
func TestNoNaps(t *testing.T) {
	for name, change := range map[string]func(*receiver){
		"messages": func(r *receiver) { r.bytes = bulk },
		"loss":     func(r *receiver) { r.behind = 1 },
		"off":      func(r *receiver) { r.gather.on = false },
	} {
		r, _ := gathering()
		r.gather.coming = gatherSure
		change(r)
		require.False(t, r.naps(), name)
		require.False(t, r.napping(), name)
	}
}

// readNothing counts looks.
type readNothing struct {
	transport.Reader
	looks int
}

func (r *readNothing) ReadBatch([]transport.Rx, bool) (int, error) {
	r.looks++
	return 0, nil
}

// Nobody looks during a nap, and whoever waits sleeps.
func TestNapping(t *testing.T) {
	r, now := gathering()
	reader := &readNothing{}
	r.reader, r.slots, r.gather.coming = reader, make([]transport.Rx, 1), gatherSure
	r.nic.rx = []*receiver{r}
	d := r.nic.NewDriver()
	d.mine.Store(1)
	require.True(t, r.naps())
	require.False(t, d.Progress())
	require.Zero(t, reader.looks)
	require.True(t, d.Patience(1000), "whatever the number of tries")
	*now = now.Add(gatherFor)
	require.False(t, d.Progress())
	require.Equal(t, 1, reader.looks)
	require.False(t, r.napping())
}
