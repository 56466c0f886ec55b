package faults

import (
	"errors"
	"math"
	"math/bits"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/transporttest"
	"github.com/gohixl/hixl/transport/udp"
)

var (
	addrA = netip.MustParseAddr("127.77.3.1")
	addrB = netip.MustParseAddr("127.77.3.2")
)

func TestConformance(t *testing.T) {
	open := func(t *testing.T, addr netip.Addr) transport.Conn {
		inner, err := udp.Open(addr, udp.Config{})
		require.NoError(t, err)
		c, err := Wrap(inner, Config{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	transporttest.Run(t, func(t *testing.T) (transport.Conn, transport.Conn) {
		return open(t, addrA), open(t, addrB)
	})
}

// recorder is a Conn that notes what it is given.
type recorder struct {
	transport.Conn
	mu     sync.Mutex
	sent   [][]byte
	refuse func(t *transport.Tx) error
	closed bool
}

func (r *recorder) LocalAddr() netip.Addr { return addrA }
func (r *recorder) Caps() transport.Caps {
	return transport.Caps{MTU: 1500, Trains: transport.Trains{MaxSegments: 64, MaxBytes: 65507}}
}

func (r *recorder) WriteBatch(b []transport.Tx) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, net.ErrClosed
	}
	for i := range b {
		if r.refuse != nil {
			if err := r.refuse(&b[i]); err != nil {
				return i, err
			}
		}
		r.sent = append(r.sent, append([]byte(nil), b[i].Data...))
	}
	return len(b), nil
}

func (r *recorder) Close() error {
	r.closed = true
	return nil
}

// numbers are what write sent, in order; damaged counts packets with one bit off
// beyond the number.
func (r *recorder) numbers(t *testing.T) (got []int, damaged int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.sent {
		off := 0
		for i := 2; i < len(p); i++ {
			off += bits.OnesCount8(p[i] ^ 0x55)
		}
		require.LessOrEqual(t, off, 1, "one bit")
		damaged += off
		got = append(got, int(p[0])<<8|int(p[1]))
	}
	return got, damaged
}

func write(t *testing.T, c transport.Conn, first, n int) {
	t.Helper()
	batch := make([]transport.Tx, n)
	for i := range batch {
		data := make([]byte, 64)
		for k := range data {
			data[k] = 0x55
		}
		data[0], data[1] = byte((first+i)>>8), byte(first+i)
		batch[i] = transport.Tx{Data: data, Dst: addrB}
	}
	k, err := c.WriteBatch(batch)
	require.NoError(t, err)
	require.Equal(t, n, k)
	for i := range batch {
		clear(batch[i].Data) // nothing of it may be needed any more
	}
}

func wrap(t *testing.T, inner transport.Conn, cfg Config) *Conn {
	t.Helper()
	c, err := Wrap(inner, cfg)
	require.NoError(t, err)
	return c
}

func upTo(n int) (s []int) {
	for i := range n {
		s = append(s, i)
	}
	return s
}

func TestEachFault(t *testing.T) {
	const total = 5000
	near := func(t *testing.T, want float64, have uint64) {
		t.Helper()
		require.InDelta(t, want, float64(have)/total, 0.03)
	}
	for _, tt := range []struct {
		name  string
		cfg   Config
		check func(t *testing.T, c Counts, got []int, damaged int)
	}{
		{"none", Config{}, func(t *testing.T, c Counts, got []int, _ int) {
			require.Equal(t, upTo(total), got)
			require.Zero(t, c)
		}},
		{"loss", Config{Loss: 0.1}, func(t *testing.T, c Counts, got []int, _ int) {
			near(t, 0.1, c.Lost)
			require.Len(t, got, total-int(c.Lost))
			require.IsIncreasing(t, got)
		}},
		{"duplicate", Config{Duplicate: 0.1}, func(t *testing.T, c Counts, got []int, _ int) {
			near(t, 0.1, c.Duplicated)
			require.Len(t, got, total+int(c.Duplicated))
			require.IsNonDecreasing(t, got)
		}},
		{"reorder", Config{Reorder: 0.1}, func(t *testing.T, c Counts, got []int, _ int) {
			near(t, 0.1, c.Reordered)
			require.ElementsMatch(t, upTo(total), got)
			for i, n := range got {
				// Held ones do not count as passing each other.
				require.InDelta(t, i, n, 4*MaxPassing, "bounded")
			}
			require.NotEqual(t, upTo(total), got)
		}},
		{"corrupt", Config{Corrupt: 0.1}, func(t *testing.T, c Counts, got []int, damaged int) {
			near(t, 0.1, c.Corrupted)
			require.Len(t, got, total)
			require.InDelta(t, c.Corrupted, damaged, float64(c.Corrupted)/10, "the rest hit the number")
		}},
		{"all", Config{Loss: 0.05, Duplicate: 0.3, Reorder: 0.3, Corrupt: 0.3}, func(t *testing.T, c Counts, got []int, damaged int) {
			require.Len(t, got, total-int(c.Lost)+int(c.Duplicated))
			require.GreaterOrEqual(t, damaged, int(c.Corrupted)*9/10)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{}
				tt.cfg.Seed = 5
				c := wrap(t, r, tt.cfg)
				for first := 0; first < total; first += 50 {
					write(t, c, first, 50)
				}
				time.Sleep(2 * HoldTime)
				got, damaged := r.numbers(t)
				tt.check(t, c.Counts(), got, damaged)
				require.NoError(t, c.Close())
			})
		})
	}
}

// Nothing is held for longer than HoldTime, and not more than MaxHeld.
func TestHeldPacketsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		c := wrap(t, r, Config{Reorder: 1})
		write(t, c, 0, 3)
		got, _ := r.numbers(t)
		require.Empty(t, got)
		time.Sleep(HoldTime / 2)
		write(t, c, 3, 1)
		time.Sleep(HoldTime/2 + 1)
		synctest.Wait()
		got, _ = r.numbers(t)
		require.Equal(t, []int{0, 1, 2}, got)
		time.Sleep(HoldTime / 2)
		synctest.Wait()
		got, _ = r.numbers(t)
		require.Equal(t, upTo(4), got)

		write(t, c, 4, MaxHeld+10)
		got, _ = r.numbers(t)
		require.Equal(t, upTo(14), got, "the oldest leave for the newest")
		require.NoError(t, c.Close())
		time.Sleep(10 * HoldTime)
		again, _ := r.numbers(t)
		require.Equal(t, got, again, "nothing is sent after Close")
		_, err := c.WriteBatch(nil)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestTrainsAreRefused(t *testing.T) {
	c := wrap(t, &recorder{}, Config{})
	require.False(t, c.Caps().Trains.On())
	n, err := c.WriteBatch([]transport.Tx{{Data: make([]byte, 8), Dst: addrB}, {Data: make([]byte, 8), Seg: 4, Dst: addrB}})
	require.ErrorIs(t, err, transport.ErrTrainsOff)
	require.Equal(t, 1, n)
}

// An error of the inner Conn is that of the caller's packet, whatever was put
// between; a packet that was reported as sent earlier is lost quietly.
func TestErrorsKeepTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := errors.New("too small for this test")
		r := &recorder{refuse: func(t *transport.Tx) error {
			if len(t.Data) < 10 {
				return small
			}
			return nil
		}}
		c := wrap(t, r, Config{Duplicate: 1})
		long, short := transport.Tx{Data: make([]byte, 64), Dst: addrB}, transport.Tx{Data: make([]byte, 4), Dst: addrB}
		n, err := c.WriteBatch([]transport.Tx{long, long, short, long})
		require.ErrorIs(t, err, small)
		require.Equal(t, 2, n)
		require.Len(t, r.sent, 4)

		c = wrap(t, r, Config{Reorder: 1})
		n, err = c.WriteBatch([]transport.Tx{short, long})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		time.Sleep(2 * HoldTime)
		synctest.Wait()
		require.Len(t, r.sent, 5)
	})
}

func TestConfig(t *testing.T) {
	for _, bad := range []Config{{Loss: -0.1}, {Reorder: 1.5}, {Duplicate: math.NaN()}, {Corrupt: math.Inf(1)}} {
		_, err := Wrap(&recorder{}, bad)
		require.ErrorIs(t, err, transport.ErrConfig)
		require.ErrorContains(t, err, "probability, 0..1")
	}
}

func TestSameSeedSameFaults(t *testing.T) {
	run := func(seed uint64) []int {
		r := &recorder{}
		c := wrap(t, r, Config{Seed: seed, Loss: 0.2, Duplicate: 0.2, Corrupt: 0.2})
		write(t, c, 0, 500)
		got, _ := r.numbers(t)
		return got
	}
	require.Equal(t, run(1), run(1))
	require.NotEqual(t, run(1), run(2))
}

// Packets of a train have their faults one by one, and what stays behind leaves in
// trains, in order.
func TestTrains(t *testing.T) {
	const size, packets = 64, 60
	train := make([]byte, packets*size-10) // the last is shorter
	for i := range packets {
		p := train[i*size : min((i+1)*size, len(train))]
		for k := range p {
			p[k] = 0x55
		}
		p[0], p[1] = 0, byte(i)
	}
	single := append([]byte(nil), train[:size]...)
	single[1] = packets
	require.False(t, wrap(t, &recorder{}, Config{}).Caps().Trains.On())
	for _, cfg := range []Config{
		{}, {Loss: 0.1}, {Loss: 1}, {Corrupt: 0.1}, {Duplicate: 0.1}, {Reorder: 0.2}, {Loss: 0.1, Corrupt: 0.1, Duplicate: 0.1, Reorder: 0.1},
	} {
		cfg.Trains, cfg.Seed = true, 5
		r := &recorder{}
		c := wrap(t, r, cfg)
		require.True(t, c.Caps().Trains.On())
		for range 20 {
			r.sent = nil
			before := c.Counts()
			n, err := c.WriteBatch([]transport.Tx{{Data: train, Seg: size, Dst: addrB}, {Data: single, Dst: addrB}})
			require.NoError(t, err)
			require.Equal(t, 2, n)
			c.mu.Lock()
			for len(c.held) > 0 { // as time would
				c.release(0)
			}
			_, err = c.flush(0)
			c.mu.Unlock()
			require.NoError(t, err)
			if cfg == (Config{Trains: true, Seed: 5}) {
				require.Len(t, r.sent, 2, "together")
			}
			var singles [][]byte
			for _, b := range r.sent {
				for len(b) > size {
					singles, b = append(singles, b[:size]), b[size:]
				}
				singles = append(singles, b)
			}
			r.sent = singles
			now := c.Counts()
			got, damaged := r.numbers(t)
			require.Len(t, got, packets+1-int(now.Lost-before.Lost)+int(now.Duplicated-before.Duplicated))
			require.LessOrEqual(t, damaged, int(now.Corrupted-before.Corrupted)+int(now.Duplicated-before.Duplicated))
			if cfg.Corrupt+cfg.Reorder == 0 && len(got) > 0 {
				require.IsNonDecreasing(t, got)
			}
		}
		require.NoError(t, c.Close())
	}
}
