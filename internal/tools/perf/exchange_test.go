package perf

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
	"github.com/gohixl/hixl/internal/tools/toolstest"
)

const recordings = "../../../testdata/pcaps"

// masked hides what differs between the address lines of two NICs: queue pair, PSN,
// rkey, address, GID, and our mark in the SRQ's place.
func masked(b []byte) string {
	if len(b) != lineLen {
		return string(b)
	}
	s := bytes.Clone(b)
	for i, c := range s {
		if i >= len("0000:0001:") && c != ':' && c != 0 {
			s[i] = '*'
		}
	}
	return string(s)
}

// isReport tells the doubles of a report, which no two runs share; a server that
// measured nothing sends zeros where the original sends what lies in its memory.
func isReport(b []byte) bool { return len(b) == 8 }

// Told the recorded bytes of the peer, each end of each test sends the recorded
// ones in as many writes, but for its own numbers.
func TestRecordedExchanges(t *testing.T) {
	base := Config{Iters: 5, Size: 2048, MTU: 1024}
	for i, c := range []struct {
		name string
		test Test
		edit func(*Config)
	}{
		{"tool-ib_write_bw", writeBW, nil},
		{"tool-ib_write_bw-b", writeBW, func(c *Config) { c.Bidirectional = true }},
		{"tool-ib_write_lat", writeLat, nil},
		{"tool-ib_read_bw", readBW, nil},
		{"tool-ib_read_lat", readLat, nil},
		{"tool-ib_send_bw", sendBW, nil},
		{"tool-ib_send_bw-ud", sendBW, func(c *Config) { c.Connection, c.Size = hixl.UD, 1024 }},
		{"tool-ib_send_lat", sendLat, nil},
		{"tool-ib_atomic_bw", atomBW, func(c *Config) { c.Size = 0 }},
	} {
		msgs := toolstest.Exchange(t, recordings, c.name)
		for _, client := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s client %v", c.name, client), func(t *testing.T) {
				cfg := base
				cfg.Test = c.test
				if c.edit != nil {
					c.edit(&cfg)
				}
				ours := replay(t, byte(100+i), cfg, msgs, client)
				theirs := toolstest.Recorded(msgs, client)
				require.Equal(t, len(theirs), len(ours), "messages")
				for k := range ours {
					if isReport(ours[k]) {
						continue
					}
					require.Equal(t, masked(theirs[k]), masked(ours[k]), "message %d", k)
				}
				checkReports(t, cfg, client, ours)
			})
		}
	}
}

// checkReports looks at what is determined in a report: size and iterations of an
// end that measured.
func checkReports(t *testing.T, cfg Config, client bool, ours [][]byte) {
	t.Helper()
	var words []uint64
	for _, m := range ours {
		if isReport(m) {
			words = append(words, binary.BigEndian.Uint64(m))
		}
	}
	if len(words) == 0 {
		require.False(t, cfg.Test.Kind == Bandwidth && cfg.Test.Verb != Send)
		return
	}
	require.Len(t, words, 5)
	if client || cfg.Bidirectional {
		size := uint64(2048)
		if cfg.Test.Verb == Atomic {
			size = atomicSize
		}
		require.Equal(t, []uint64{size, 5}, words[:2])
	} else {
		require.Equal(t, make([]uint64, 5), words)
	}
}

// replay runs one end against a recording, with no traffic, and returns what it
// said.
func replay(t *testing.T, n byte, cfg Config, msgs []toolstest.Message, client bool) [][]byte {
	t.Helper()
	if client {
		cfg.Host = "a recording"
	}
	cfg.Patience = toolstest.Patience
	require.NoError(t, cfg.fill())
	rec, peer := toolstest.Connection(t)
	conn := tools.NewConn(rec, cfg.Patience)
	played := make(chan error, 1)
	go func() { played <- toolstest.Play(peer, msgs, !client) }()
	dev, err := openDevice(&cfg, netip.AddrFrom4([4]byte{127, 94, n, 1}))
	require.NoError(t, err)
	s := newTCPSession(&cfg, conn, dev)
	s.drive = noTraffic(s)
	s.ctl.link = afterTraffic{conn, func() { served(s) }}
	require.NoError(t, dev.close(s.run(t.Context())))
	require.NoError(t, <-played)
	return rec.Writes()
}

// noTraffic pretends that all messages went as they should.
func noTraffic(s *session) func(context.Context, *engine, *rounds, <-chan error) error {
	return func(_ context.Context, e *engine, at *rounds, _ <-chan error) error {
		e.time.begin(time.Unix(0, 0))
		e.time.counted, e.time.last = uint64(s.cfg.Iters), time.Unix(1, 0)
		for qp := range s.cfg.QPs {
			e.flows[qp].received = uint64(s.cfg.Iters)
			fill(s.dev.local(qp), 1)
			if s.cfg.Test.Verb != Atomic {
				fill(s.dev.shared(qp), 1)
			}
		}
		if at != nil {
			*at = make(rounds, s.cfg.Iters)
		}
		return nil
	}
}

// afterTraffic is a link that does something when a server hears that the client's
// traffic is over.
type afterTraffic struct {
	*tools.Conn
	do func()
}

func (l afterTraffic) Await(ctx context.Context, step string, b []byte) error {
	err := l.Conn.Await(ctx, step, b)
	if step == "barrier after the traffic" {
		l.do()
	}
	return err
}

// served makes the memory of a server look as after the recorded test.
func served(s *session) {
	if s.cfg.Client() {
		return
	}
	shared := s.dev.shared(0)
	if s.cfg.Test.Verb != Atomic {
		fill(shared, 1)
		return
	}
	for i := range s.cfg.Iters {
		at := s.dev.lay.walk(atomicSize).at(uint64(i))
		binary.NativeEndian.PutUint64(shared[at:], binary.NativeEndian.Uint64(shared[at:])+1)
	}
}
