package transporttest

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/transport"
)

// patience is how long anything may take that must happen. Nothing waits for it
// when all is well.
const patience = 2 * time.Minute

// Open gives two Conns that reach each other over a faultless path, and arranges
// for their end with t.Cleanup. They may be one and the same, where a system has
// only one address to give. The test may close them earlier.
type Open func(t *testing.T) (a, b transport.Conn)

// Run runs the whole suite.
func Run(t *testing.T, open Open) {
	for _, tt := range []struct {
		name string
		test func(t *testing.T, a, b transport.Conn)
	}{
		{"Addresses", testAddresses},
		{"Order", testOrder},
		{"Sizes", testSizes},
		{"SlotsKeepStorage", testSlots},
		{"TOS", testTOS},
		{"SourcePorts", testSourcePorts},
		{"Identification", testIdentification},
		{"Trains", testTrains},
		{"Lent", testLent},
		{"BadTx", testBadTx},
		{"NoWait", testNoWait},
		{"Wait", testWait},
		{"WaitRead", testWaitRead},
		{"Close", testClose},
		{"CloseWakesReaders", testCloseWakes},
		{"Writers", testWriters},
		{"Stats", testStats},
		{"Allocations", testAllocations},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := open(t)
			tt.test(t, a, b)
		})
	}
}

// packet returns n bytes that tell its number. From 12 bytes on all are used.
func packet(n, number int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(number >> (8 * (i % 3)))
		if i >= 3 {
			p[i] += byte(i)
		}
	}
	return p
}

// payloadMax is the largest UDP payload of a Conn.
func payloadMax(c transport.Conn) int { return c.Caps().MTU - overhead(c.LocalAddr()) }

func overhead(a netip.Addr) int {
	if a.Is6() {
		return 48
	}
	return 28
}

// received is a copy of one packet out of a slot.
type received struct {
	transport.Rx
	packet []byte
}

// collect reads until it has n packets, and fails if that takes too long.
func collect(t *testing.T, c transport.Conn, n int) []received {
	t.Helper()
	var got []received
	batch := transport.NewBatch(c, 16)
	for end := time.Now().Add(patience); len(got) < n; {
		k, err := c.ReadBatch(batch, false)
		require.NoError(t, err)
		for i := range batch[:k] {
			r := &batch[i]
			for p := range r.Packets() {
				one := received{*r, append([]byte(nil), r.Packet(p)...)}
				if r.HaveID {
					one.ID += uint16(p)
				}
				got = append(got, one)
			}
		}
		if k == 0 {
			require.True(t, time.Now().Before(end), "%d of %d packets arrived; stats %+v", len(got), n, c.Stats())
			time.Sleep(20 * time.Microsecond)
		}
	}
	c.Release(batch)
	require.Len(t, got, n)
	return got
}

// send writes all of b or fails.
func send(t *testing.T, c transport.Conn, b ...transport.Tx) {
	t.Helper()
	n, err := c.WriteBatch(b)
	require.NoError(t, err)
	require.Equal(t, len(b), n)
}

// within fails unless f returns in time.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s did not return", what)
	}
}
