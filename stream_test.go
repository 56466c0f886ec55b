package hixl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport/sim"
)

// put puts a transfer on a stream.
func put(t *testing.T, s *hixl.Stream, p *hixl.Peer, x hixl.Transfer) *hixl.Handle {
	t.Helper()
	h, err := s.Transfer(p, &x)
	require.NoError(t, err)
	return h
}

// Each step needs the one before: bytes go to one peer, come back, go to another, and
// come back changed, over a network that loses, doubles, delays, reorders and damages.
func TestStreamIsOrdered(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, 3, sim.Config{Seed: seed, Link: bad}, hixl.PeerConfig{Seed: seed + 1, QPs: 1 + int(seed%4)})
			s := w.all[0].NewStream(hixl.StreamConfig{Priority: int(seed%3) - 1})
			local := w.mem[0]
			one, two := w.peer(0, 1), w.peer(0, 2)
			far := map[*hixl.Peer]*hixl.RemoteRegion{one: w.remote(one, 1), two: w.remote(two, 2)}
			var ended []int
			const size, rounds = 5000, 20
			step := 0
			move := func(p *hixl.Peer, op hixl.TransferOp, at uint64) {
				n := step
				step++
				put(t, s, p, hixl.Transfer{
					Op: op, Descs: []hixl.Desc{{Local: local, LocalOff: at, Remote: far[p], Len: size}},
					Done: func(*hixl.Handle) { ended = append(ended, n) },
				})
			}
			for i := range rounds {
				_, err := s.Call(func() error {
					copy(local.Bytes(), bytes.Repeat([]byte{byte(i + 1)}, size))
					return nil
				})
				require.NoError(t, err)
				move(one, hixl.Write, 0)
				move(one, hixl.Read, 8192)
				move(one, hixl.Write, 8192)
				move(two, hixl.Write, 8192)
				move(two, hixl.Read, 16384)
				_, err = s.Call(func() error {
					if !bytes.Equal(local.Bytes()[:size], local.Bytes()[16384:16384+size]) {
						return fmt.Errorf("round %d was not over", i)
					}
					return nil
				})
				require.NoError(t, err)
			}
			end := s.Record()
			require.False(t, s.Query())
			w.until(10*time.Minute, end.Query)
			require.NoError(t, end.Err())
			require.True(t, s.Query())
			require.Len(t, ended, 5*rounds)
			require.IsIncreasing(t, ended)
		})
	}
}

// A stream waits where others have filled the peer's queue, and can be canceled there.
func TestStreamWaitsForRoom(t *testing.T) {
	w := newWorld(t, 2, sim.Config{Link: sim.Link{Delay: time.Millisecond}}, hixl.PeerConfig{QPs: 1, SendQueue: 1, MaxQueued: 8})
	p := w.peer(0, 1)
	r := w.remote(p, 1)
	piece := hixl.Desc{Local: w.mem[0], Remote: r, Len: 64}
	var others []*hixl.Handle
	err := error(nil)
	for err == nil {
		var h *hixl.Handle
		if h, err = p.WriteAsync(piece); err == nil {
			others = append(others, h)
		}
	}
	require.ErrorIs(t, err, hixl.ErrBusy)
	s := w.all[0].NewStream(hixl.StreamConfig{})
	three := hixl.Transfer{Op: hixl.Write, Descs: []hixl.Desc{piece, piece, piece}}
	first, canceled, last := put(t, s, p, three), put(t, w.all[0].NewStream(hixl.StreamConfig{}), p, three), put(t, s, p, three)
	done, err := first.Poll()
	require.False(t, done, "%v", err)
	canceled.StartCancel()
	require.ErrorIs(t, canceled.Err(), hixl.ErrCanceled)
	for _, h := range append(others, first, last) {
		w.wait(h, nil)
	}
	require.NoError(t, s.Reset())

	// What never fits is told, once.
	many := hixl.Transfer{Op: hixl.Write, Descs: make([]hixl.Desc, 9)}
	h := put(t, s, p, many)
	w.until(time.Second, w.done(h))
	require.ErrorIs(t, h.Err(), hixl.ErrBusy)
}

// What one stream does waits for an event of another, of another context.
func TestStreamsWaitForEvents(t *testing.T) {
	w := newWorld(t, 3, sim.Config{Seed: 1, Link: bad}, hixl.PeerConfig{Seed: 1})
	a, b := w.all[0].NewStream(hixl.StreamConfig{}), w.all[1].NewStream(hixl.StreamConfig{})
	p, q := w.peer(0, 2), w.peer(1, 2)
	copy(w.mem[0].Bytes(), "for the other")
	put(t, a, p, hixl.Transfer{Op: hixl.Write, Descs: []hixl.Desc{{Local: w.mem[0], Remote: w.remote(p, 2), Len: 8192}}})
	there := a.Record()
	require.NoError(t, b.Wait(there))
	h := put(t, b, q, hixl.Transfer{Op: hixl.Read, Descs: []hixl.Desc{{Local: w.mem[1], Remote: w.remote(q, 2), Len: 8192}}})
	w.wait(h, nil)
	require.Equal(t, "for the other", string(w.mem[1].Bytes()[:13]))
	at, ok := there.Time()
	require.True(t, ok)
	require.LessOrEqual(t, at, w.net.Now())

	// An event that does not come: others go on, and Close ends the wait.
	require.NoError(t, b.Wait(new(stuck).event(t, w)))
	h = put(t, b, q, hixl.Transfer{Op: hixl.Notify, Notify: &hixl.Notification{Name: "never"}})
	w.pass(time.Second)
	done, _ := h.Poll()
	require.False(t, done)
	w.halt(1)
	done, err := h.Poll()
	require.True(t, done)
	require.ErrorIs(t, err, hixl.ErrStream)
	require.ErrorIs(t, err, hixl.ErrClosed)
	_, err = b.Transfer(q, &hixl.Transfer{Op: hixl.Notify, Notify: &hixl.Notification{}})
	require.ErrorIs(t, err, hixl.ErrClosed)
}

// stuck is a stream whose event does not come.
type stuck struct{}

func (stuck) event(t *testing.T, w *world) *hixl.StreamEvent {
	s := w.all[0].NewStream(hixl.StreamConfig{})
	ever := w.all[0].NewStream(hixl.StreamConfig{})
	nobody, err := w.all[0].Peer(w.addr(9))
	require.NoError(t, err)
	put(t, ever, nobody, hixl.Transfer{Op: hixl.Notify, Notify: &hixl.Notification{}})
	require.NoError(t, s.Wait(ever.Record()))
	return s.Record()
}

// What fails takes with it what is behind it, until it is told; so does what is
// canceled before it has begun.
func TestStreamFails(t *testing.T) {
	w := newWorld(t, 2, sim.Config{Seed: 2, Link: sim.Link{Delay: time.Millisecond}}, hixl.PeerConfig{Seed: 2})
	p := w.peer(0, 1)
	far := w.remote(p, 1)
	s := w.all[0].NewStream(hixl.StreamConfig{})
	add := hixl.Transfer{Op: hixl.FetchAdd, Descs: []hixl.Desc{{Remote: far}}, Operand: 1}
	first := put(t, s, p, add)
	over := put(t, s, p, hixl.Transfer{Op: hixl.Write, Descs: []hixl.Desc{{Inline: []byte("x"), Remote: far, RemoteOff: far.Len()}}})
	behind := put(t, s, p, add)
	end := s.Record()
	w.until(time.Minute, end.Query)
	require.NoError(t, first.Err())
	require.Error(t, over.Err())
	require.ErrorIs(t, behind.Err(), hixl.ErrStream)
	require.ErrorIs(t, end.Err(), over.Err())
	require.ErrorIs(t, s.Reset(), over.Err())

	_, err := s.Call(func() error { return errors.New("no result") })
	require.NoError(t, err)
	behind = put(t, s, p, add)
	w.until(time.Minute, s.Query)
	require.ErrorContains(t, behind.Err(), "no result")
	require.Error(t, s.Reset())

	first = put(t, s, p, add)
	_, err = s.Call(func() error { return nil })
	require.NoError(t, err)
	waiting := put(t, s, p, add)
	waiting.StartCancel()
	require.True(t, waiting.Fenced())
	require.ErrorIs(t, waiting.Err(), hixl.ErrCanceled)
	behind = put(t, s, p, add)
	w.until(time.Minute, s.Query)
	require.NoError(t, first.Err())
	require.ErrorIs(t, behind.Err(), hixl.ErrStream)
	require.ErrorIs(t, s.Reset(), hixl.ErrCanceled)
	h := w.wait(s.Transfer(p, &add))
	require.EqualValues(t, 2, h.Result(), "what was behind a failure did not take effect")
	_, err = s.Transfer(w.peer(1, 0), &add)
	require.ErrorIs(t, err, hixl.ErrTransfer)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
}

// An urgent write is not behind bulk that is under way, nor behind what waits.
func TestUrgentStream(t *testing.T) {
	took := func(priority int) time.Duration {
		w := newWorld(t, 2, sim.Config{Seed: 3, Link: sim.Link{Delay: 10 * time.Microsecond, Rate: 1e9}}, hixl.PeerConfig{Seed: 3, QPs: 3, SendQueue: 16})
		p := w.peer(0, 1)
		far := w.remote(p, 1)
		bulk, other := w.all[0].NewStream(hixl.StreamConfig{Priority: -1, MaxBytes: 1 << 20}), w.all[0].NewStream(hixl.StreamConfig{Priority: priority})
		word := hixl.Transfer{Op: hixl.Write, Descs: []hixl.Desc{{Inline: make([]byte, 8), Remote: far}}}
		large := hixl.Transfer{Op: hixl.Write, Descs: []hixl.Desc{{Local: w.mem[0], Remote: far, Len: 64 << 10}}}
		for range 20 { // all lanes are made, and all are busy
			w.wait(p.Start(&large))
			w.wait(bulk.Transfer(p, &large))
			w.wait(other.Transfer(p, &word))
		}
		for range 100 {
			put(t, bulk, p, large)
			_, err := p.Start(&large)
			require.NoError(t, err)
		}
		begun := w.net.Now()
		w.wait(other.Transfer(p, &word))
		require.False(t, bulk.Query())
		return w.net.Now().Sub(begun)
	}
	urgent, usual := took(1), took(0)
	require.Less(t, 4*urgent, usual)
	t.Logf("urgent %v, else %v", urgent, usual)
}

// Streams on real sockets, from many goroutines, with computation beside.
func TestStreamLive(t *testing.T) {
	ctx := soon(t)
	server, worker := openAt("127.88.52.1"), openAt("127.88.52.2")
	defer func() { require.NoError(t, server.Close()) }()
	defer func() { require.NoError(t, worker.Close()) }()
	mem := alloc(t, server, 1<<20)
	require.NoError(t, server.Publish("mem", mem))
	l, err := server.Listen(ctx, ":18515")
	require.NoError(t, err)
	p, err := worker.Dial(ctx, l.Addr().String())
	require.NoError(t, err)
	far, err := p.Region(ctx, "mem")
	require.NoError(t, err)
	local := alloc(t, worker, 1<<20)
	trace := worker.StartTrace(1000)
	copied, used := worker.NewStream(hixl.StreamConfig{}), worker.NewStream(hixl.StreamConfig{Priority: 1})
	sum := uint64(0)
	for i := range uint64(20) {
		put(t, copied, p, hixl.Transfer{Op: hixl.Write, Descs: []hixl.Desc{{Local: local, LocalOff: i * 4096, Remote: far, RemoteOff: i * 4096, Len: 4096}}})
		require.NoError(t, used.Wait(copied.Record()))
		_, err := used.Call(func() error {
			sum += i
			return nil
		})
		require.NoError(t, err)
		put(t, used, p, hixl.Transfer{Op: hixl.WriteImm, Descs: []hixl.Desc{{Remote: far}}, Imm: uint32(i)})
	}
	require.NoError(t, used.Synchronize(ctx))
	require.NoError(t, copied.Synchronize(ctx))
	require.EqualValues(t, 190, sum)
	from, err := l.Accept(ctx)
	require.NoError(t, err)
	for i := range uint32(20) {
		n, err := from.Notifications(ctx)
		require.NoError(t, err)
		require.Equal(t, i, n.Imm)
	}
	worker.StopTrace()
	r := trace.Report()
	require.EqualValues(t, 40, r.Transfers)
	require.EqualValues(t, 20*4096, r.Bytes)
	require.NotZero(t, r.Communication)
	var out bytes.Buffer
	require.NoError(t, trace.WriteJSON(&out))
	var file struct {
		TraceEvents []struct {
			Name    string
			Ts, Dur float64
		}
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &file))
	require.Len(t, file.TraceEvents, 60)
	require.NoError(t, copied.Close())
	require.ErrorIs(t, copied.Wait(used.Record()), hixl.ErrClosed)
}

// What waits on a stream ends with its context, closed or not, and so do records,
// also those for which there was no room; on a stream that is closed they come too.
func TestStreamClosedWithWork(t *testing.T) {
	w := newWorld(t, 2, sim.Config{Seed: 4}, hixl.PeerConfig{Seed: 4, MaxQueued: 3})
	p := w.peer(1, 0)
	s := w.all[1].NewStream(hixl.StreamConfig{})
	done := s.Record()
	require.True(t, done.Query())
	require.NotSame(t, done, s.Record())
	require.NoError(t, s.Wait(new(stuck).event(t, w)))
	tell := hixl.Transfer{Op: hixl.Notify, Notify: &hixl.Notification{Name: "never"}}
	first, second := put(t, s, p, tell), put(t, s, p, tell)
	_, err := s.Transfer(p, &tell)
	require.ErrorIs(t, err, hixl.ErrBusy)
	end := s.Record()
	require.Same(t, end, s.Record())
	require.NoError(t, s.Close())
	require.Same(t, end, s.Record())
	w.pass(time.Second)
	require.False(t, end.Query())
	w.halt(1)
	require.True(t, end.Query())
	require.ErrorIs(t, end.Err(), hixl.ErrClosed)
	for _, h := range []*hixl.Handle{first, second} {
		done, err := h.Poll()
		require.True(t, done)
		require.ErrorIs(t, err, hixl.ErrStream)
	}
	require.True(t, s.Query())
	require.True(t, s.Record().Query())
}
