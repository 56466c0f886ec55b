package cq_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pgregory.net/rapid"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.VerifyTestMain(m) }

func newQueue(tb testing.TB, capacity int) *cq.Queue {
	tb.Helper()
	q, err := cq.New(capacity)
	require.NoError(tb, err)
	return q
}

func put(q *cq.Queue, ids ...uint64) {
	for _, id := range ids {
		q.Complete(&cq.Completion{WRID: id})
	}
}

func ids(c []cq.Completion) []uint64 {
	var out []uint64
	for i := range c {
		out = append(out, c[i].WRID)
	}
	return out
}

func poll(tb testing.TB, q *cq.Queue, room int) []uint64 {
	tb.Helper()
	out := make([]cq.Completion, room)
	n, err := q.Poll(out)
	require.NoError(tb, err)
	return ids(out[:n])
}

func TestCapacity(t *testing.T) {
	for _, n := range []int{-5, 0, cq.MaxCapacity + 1} {
		_, err := cq.New(n)
		require.ErrorIs(t, err, cq.ErrCapacity)
		require.ErrorContains(t, err, "give 1 to 1048576")
	}
	for _, n := range []int{1, 3, cq.MaxCapacity} {
		require.Equal(t, n, newQueue(t, n).Cap())
	}
}

func TestQueueAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 70).Draw(t, "capacity")
		q, err := cq.New(capacity)
		require.NoError(t, err)
		var model []uint64
		var next uint64
		overrun, closed := false, false
		t.Repeat(map[string]func(*rapid.T){
			"complete": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					next++
					ok := q.Complete(&cq.Completion{WRID: next})
					overrun = overrun || !closed && len(model) == capacity
					require.Equal(t, !overrun && !closed, ok)
					if ok {
						model = append(model, next)
					}
				}
			},
			"poll": func(t *rapid.T) {
				out := make([]cq.Completion, rapid.IntRange(0, 30).Draw(t, "room"))
				n, err := q.Poll(out)
				require.Equal(t, min(len(model), len(out)), n)
				require.ElementsMatch(t, model[:n], ids(out[:n]))
				drained := len(model) == 0
				model = model[n:]
				switch {
				case !drained || !overrun && !closed:
					require.NoError(t, err)
				case overrun:
					require.ErrorIs(t, err, cq.ErrOverrun)
				default:
					require.ErrorIs(t, err, cq.ErrClosed)
				}
			},
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
					q.Close()
					closed = true
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), q.Len())
				require.Equal(t, overrun, q.Overrun())
			},
		})
	})
}

func TestOverrunIsSticky(t *testing.T) {
	q := newQueue(t, 2)
	put(q, 1, 2)
	require.False(t, q.Complete(&cq.Completion{WRID: 3}))
	require.Equal(t, []uint64{1}, poll(t, q, 1))
	require.False(t, q.Complete(&cq.Completion{WRID: 4}), "nothing after a gap")
	require.Equal(t, []uint64{2}, poll(t, q, 5), "what was there before can be taken")
	out := make([]cq.Completion, 1)
	for range 2 {
		_, err := q.Poll(out)
		require.ErrorIs(t, err, cq.ErrOverrun)
		var typed *cq.OverrunError
		require.ErrorAs(t, err, &typed)
		require.Equal(t, cq.OverrunError{Capacity: 2, Lost: 2}, *typed)
		require.ErrorContains(t, err, "poll it more often")
	}
	_, err := q.Wait(t.Context(), out)
	require.ErrorIs(t, err, cq.ErrOverrun)
}

func TestWaitReturnsWhatIsThere(t *testing.T) {
	q := newQueue(t, 8)
	put(q, 1, 2, 3)
	out := make([]cq.Completion, 2)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	n, err := q.Wait(ended, out)
	require.NoError(t, err, "completions go before a context that has ended")
	require.Equal(t, []uint64{1, 2}, ids(out[:n]))
	_, err = q.Wait(t.Context(), nil)
	require.ErrorIs(t, err, cq.ErrNoRoom)
	require.Equal(t, []uint64{3}, poll(t, q, 2))
	_, err = q.Wait(ended, out)
	require.ErrorIs(t, err, context.Canceled)
}

func TestWaitEndsWithItsContext(t *testing.T) {
	q := newQueue(t, 8)
	out := make([]cq.Completion, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := q.Wait(ctx, out)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	put(q, 7)
	require.Equal(t, []uint64{7}, poll(t, q, 2), "nothing is lost to who gave up")
}

// parked waits until n goroutines are parked in Wait, as far as it can be seen
// from outside: their hook ran dry and the scheduler had its turns.
func parked(entered *atomic.Int64, n int64) {
	for entered.Load() < n {
		runtime.Gosched()
	}
	for range 100 {
		runtime.Gosched()
	}
}

func TestEveryCompletionFindsOneWaiter(t *testing.T) {
	const waiters, each = 8, 500
	q := newQueue(t, waiters*each)
	var got [waiters*each + 1]atomic.Int64
	var taken atomic.Int64
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for k := range waiters {
		wg.Go(func() {
			out := make([]cq.Completion, 1+k%3)
			for {
				n, err := q.Wait(ctx, out)
				if err != nil {
					return
				}
				for _, id := range ids(out[:n]) {
					got[id].Add(1)
				}
				if taken.Add(int64(n)) == waiters*each {
					cancel()
				}
			}
		})
	}
	for id := range uint64(waiters * each) {
		put(q, id+1)
		if id%7 == 0 {
			runtime.Gosched()
		}
	}
	wg.Wait() // hangs if a wake is lost
	for id := 1; id <= waiters*each; id++ {
		require.EqualValues(t, 1, got[id].Load(), "completion %d", id)
	}
}

// A waiter that is woken and gives up at the same moment must not take the wake
// with it.
func TestWakeSurvivesWhoGivesUp(t *testing.T) {
	for range 300 {
		q := newQueue(t, 4)
		var entered atomic.Int64
		q.SetDriver(driver(func() bool { entered.Add(1); return false }))
		quitter, quit := context.WithCancel(t.Context())
		results := make(chan int, 2)
		wait := func(ctx context.Context) {
			out := make([]cq.Completion, 1)
			n, _ := q.Wait(ctx, out)
			results <- n
		}
		go wait(quitter)
		parked(&entered, 1)
		stayer, stop := context.WithCancel(t.Context())
		go wait(stayer)
		parked(&entered, 2)
		go quit()
		put(q, 1)
		if <-results == 0 { // the quitter went empty-handed: the other must get it
			require.Equal(t, 1, <-results)
		} else {
			stop()
			<-results
		}
		stop()
		quit()
	}
}

func TestOneWakeForSeveralCompletions(t *testing.T) {
	q := newQueue(t, 8)
	var entered atomic.Int64
	q.SetDriver(driver(func() bool { entered.Add(1); return false }))
	results := make(chan uint64, 3)
	for range 3 {
		go func() {
			out := make([]cq.Completion, 1)
			if n, err := q.Wait(context.Background(), out); err == nil && n == 1 {
				results <- out[0].WRID
			}
		}()
	}
	parked(&entered, 3)
	put(q, 1, 2, 3)
	require.EqualValues(t, 6, <-results+<-results+<-results)
}

func TestCloseWakesAll(t *testing.T) {
	q := newQueue(t, 8)
	var entered atomic.Int64
	q.SetDriver(driver(func() bool { entered.Add(1); return false }))
	errs := make(chan error, 4)
	for range 4 {
		go func() {
			_, err := q.Wait(context.Background(), make([]cq.Completion, 1))
			errs <- err
		}()
	}
	parked(&entered, 4)
	q.Close()
	q.Close()
	for range 4 {
		require.ErrorIs(t, <-errs, cq.ErrClosed)
	}
	require.False(t, q.Complete(&cq.Completion{}))
	require.False(t, q.Overrun(), "refused, not overrun")
	_, open := <-q.Events()
	require.False(t, open)
	require.True(t, q.Arm(false))
}

func TestOverrunWakesAll(t *testing.T) {
	q := newQueue(t, 1)
	var entered atomic.Int64
	q.SetDriver(driver(func() bool { entered.Add(1); return false }))
	type result struct {
		n   int
		err error
	}
	results := make(chan result, 2)
	for range 2 {
		go func() {
			n, err := q.Wait(context.Background(), make([]cq.Completion, 1))
			results <- result{n, err}
		}()
	}
	parked(&entered, 2)
	put(q, 1, 2, 3, 4) // at least one is lost unless somebody is very quick
	for !q.Overrun() {
		put(q, 5)
	}
	for range 2 {
		r := <-results
		if r.n == 0 {
			require.ErrorIs(t, r.err, cq.ErrOverrun)
		}
	}
}

func TestProgressHook(t *testing.T) {
	q := newQueue(t, 8)
	calls := 0
	q.SetDriver(driver(func() bool {
		calls++
		if calls%3 == 0 {
			put(q, uint64(calls)) // no lock is held: this would deadlock
			return true
		}
		return calls%3 == 2 // work, but no completion yet
	}))
	require.Empty(t, poll(t, q, 1))
	require.Equal(t, 1, calls, "polling looks once")
	out := make([]cq.Completion, 1)
	n, err := q.Wait(t.Context(), out)
	require.NoError(t, err)
	require.Equal(t, []uint64{3}, ids(out[:n]))
	require.Equal(t, 3, calls, "waiting goes on for as long as there is work")

	calls = 2
	require.Equal(t, []uint64{3}, poll(t, q, 1), "what polling itself brought about is returned")
	put(q, 9)
	require.Equal(t, []uint64{9}, poll(t, q, 1))
	require.Equal(t, 3, calls, "not called when something waits")
	require.Empty(t, poll(t, q, 0))
	require.Equal(t, 3, calls, "nor without room")
	q.SetDriver(nil)
	require.Empty(t, poll(t, q, 1))
	require.Equal(t, 3, calls)
}

// driver is progress without patience.
type driver func() bool

func (d driver) Progress() bool    { return d() }
func (d driver) Patience(int) bool { return false }

func fired(q *cq.Queue) bool {
	select {
	case <-q.Events():
		return true
	default:
		return false
	}
}

func TestArm(t *testing.T) {
	q := newQueue(t, 16)
	put(q, 1)
	require.False(t, fired(q), "not armed")
	require.True(t, q.Arm(false), "one waits already: poll again")
	require.False(t, fired(q), "which makes no event")
	put(q, 2, 3)
	require.True(t, fired(q))
	require.False(t, fired(q), "one event for one Arm")
	put(q, 4)
	require.False(t, fired(q))
	poll(t, q, 16)
	require.False(t, q.Arm(false))
	require.False(t, q.Arm(true), "does not narrow")
	put(q, 5)
	require.True(t, fired(q))
}

func TestArmSolicited(t *testing.T) {
	q := newQueue(t, 4)
	q.Arm(true)
	put(q, 1)
	require.False(t, fired(q))
	q.Complete(&cq.Completion{Flags: cq.WithImm | cq.Solicited})
	require.True(t, fired(q))
	q.Arm(true)
	q.Complete(&cq.Completion{Status: cq.StatusFlushed})
	require.True(t, fired(q), "a failure is always worth an event")
	q.Arm(true)
	q.Arm(false)
	put(q, 4)
	require.True(t, fired(q), "widened")
	q.Arm(true)
	require.False(t, q.Complete(&cq.Completion{}))
	require.True(t, fired(q), "an overrun too")
	require.True(t, q.Arm(true))
}

func TestNothingIsAllocated(t *testing.T) {
	q := newQueue(t, 64)
	c := &cq.Completion{WRID: 1}
	out := make([]cq.Completion, 8)
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		q.Complete(c)
		_, _ = q.Poll(out)
		_, _ = q.Poll(out)
		q.Complete(c)
		_, _ = q.Wait(ctx, out)
	}))
	// Parking allocates nothing either, once a waiter was made.
	wake := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for range wake {
			q.Complete(c)
		}
	}()
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		wake <- struct{}{}
		_, _ = q.Wait(ctx, out)
	}))
	close(wake)
	<-stopped
}

func BenchmarkCompletePoll(b *testing.B) {
	q := newQueue(b, 64)
	c := &cq.Completion{WRID: 1}
	out := make([]cq.Completion, 16)
	b.ReportAllocs()
	for b.Loop() {
		q.Complete(c)
		_, _ = q.Poll(out)
	}
}

func BenchmarkCompletePollBatch(b *testing.B) {
	q := newQueue(b, 64)
	c := &cq.Completion{WRID: 1}
	out := make([]cq.Completion, 16)
	b.ReportAllocs()
	for b.Loop() {
		for range 16 {
			q.Complete(c)
		}
		_, _ = q.Poll(out)
	}
}

func BenchmarkPollEmpty(b *testing.B) {
	q := newQueue(b, 64)
	out := make([]cq.Completion, 16)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = q.Poll(out)
	}
}

// BenchmarkWake is there and back between two goroutines that park.
func BenchmarkWake(b *testing.B) {
	there, back := newQueue(b, 4), newQueue(b, 4)
	c := &cq.Completion{}
	var wg sync.WaitGroup
	wg.Go(func() {
		out := make([]cq.Completion, 1)
		for {
			if _, err := there.Wait(context.Background(), out); err != nil {
				return
			}
			back.Complete(c)
		}
	})
	out := make([]cq.Completion, 1)
	b.ReportAllocs()
	for b.Loop() {
		there.Complete(c)
		_, _ = back.Wait(context.Background(), out)
	}
	there.Close()
	wg.Wait()
}
