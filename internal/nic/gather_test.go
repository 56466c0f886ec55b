package nic

import (
	"net/netip"
	"testing"
	"time"

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

// napped tells of what came during a nap, and of what the look after it found.
func (r *receiver) napped(meanwhile, after uint64) {
	r.gather.took(meanwhile)
	r.gather.took(after)
}

// Behind a message it is not known what follows. Naps go on there for as long as enough
// has come during each, and those in vain become rarer and rarer, down to one in
// gatherSkip batches.
func TestNapsBehindMessages(t *testing.T) {
	r, _ := gathering()
	for range 3 {
		require.True(t, r.naps())
		r.napped(gatherLeast, bulk+1)
	}
	for want := 1; want <= gatherSkip; want *= 2 {
		require.True(t, r.naps())
		r.napped(gatherLeast-1, bulk+1)
		for i := range want {
			require.False(t, r.naps(), "batch %d after a nap in vain", i)
			r.gather.took(bulk + 1)
		}
	}
	require.True(t, r.naps())
	r.napped(0, bulk+1)
	require.Equal(t, gatherSkip, r.gather.ends.skip, "never rarer")
	for range gatherSkip {
		require.False(t, r.naps())
	}
	require.True(t, r.naps())
	r.napped(gatherLeast, bulk+1)
	require.True(t, r.naps(), "one that pays is enough")
}

// Inside a long message naps pay whatever became of those behind others, unless the peer
// waits for our answers: it may have less unanswered than comes during a nap.
func TestNapsInsideAMessage(t *testing.T) {
	r, _ := gathering()
	r.gather.ends = doubt{5, 5}
	r.gather.coming = gatherSure
	require.True(t, r.naps())
	r.napped(1, bulk+1)
	require.Equal(t, doubt{5, 5}, r.gather.ends)
	for want := 1; want <= gatherSkip; want *= 2 {
		require.True(t, r.naps())
		r.napped(64<<10, bulk)
		for i := range want {
			require.False(t, r.naps(), "batch %d after the peer waited", i)
			r.gather.took(64 << 10)
		}
	}
	require.True(t, r.naps())
	r.napped(64<<10, bulk+1)
	require.True(t, r.naps(), "it waits no more")
}

// After a nap the next look is at once: it tells whether the peer has gone on.
func TestLookAfterANap(t *testing.T) {
	r, _ := gathering()
	r.gather.coming = gatherSure
	require.True(t, r.naps())
	r.gather.took(gatherLeast)
	require.True(t, r.gather.check)
	require.False(t, r.naps())
	r.gather.took(bulk + 1)
	require.True(t, r.naps())
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

// readStray gives one packet at each look, which is for another address.
type readStray struct{ transport.Reader }

func (readStray) ReadBatch(b []transport.Rx, _ bool) (int, error) {
	b[0].Data, b[0].Dst = make([]byte, 32), netip.MustParseAddr("192.0.2.1")
	return 1, nil
}

// That packets were missed is forgotten after some batches, whoever takes them.
func TestLossIsForgotten(t *testing.T) {
	r, _ := gathering()
	r.reader, r.slots, r.send, r.behind = readStray{}, make([]transport.Rx, 1), &sender{nic: r.nic}, 2
	for want := 1; want >= 0; want-- {
		require.True(t, r.progress())
		require.Equal(t, want, r.behind)
	}
	require.True(t, r.progress())
	require.Zero(t, r.behind)
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

// Nobody looks during a nap. Whoever waits sleeps, but not where it parks at once, nor
// while another of the receivers that it drives has no nap.
func TestNapping(t *testing.T) {
	r, now := gathering()
	other, _ := gathering()
	reader, naps := &readNothing{}, 0
	r.reader, r.slots, r.gather.coming = reader, make([]transport.Rx, 1), gatherSure
	r.nic.rx, r.nic.nap = []*receiver{r, other}, func(time.Duration) { naps++ }
	d := r.nic.NewDriver()
	d.mine.Store(1)
	require.True(t, r.naps())
	require.False(t, d.Progress())
	require.Zero(t, reader.looks)
	require.True(t, d.Patience(1000), "whatever the number of tries")
	require.Equal(t, 1, naps)
	d.mine.Store(3)
	require.False(t, d.napping())
	d.mine.Store(1)
	r.nic.cfg.Progress = LowCPU
	require.False(t, d.napping())
	*now = now.Add(gatherFor)
	require.False(t, d.Progress())
	require.Equal(t, 1, reader.looks)
	require.False(t, r.napping())
}
