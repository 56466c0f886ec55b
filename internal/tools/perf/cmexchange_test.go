package perf

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/internal/tools"
	"github.com/gohixl/hixl/internal/tools/toolstest"
)

// script is a link to a recorded peer: it has its messages to give, in order, and
// keeps ours.
type script struct {
	client bool
	msgs   []toolstest.Message
	ours   [][]byte
	heard  func(step string)
}

var errScript = errors.New("the recording has no such message here")

func (s *script) Peer() string { return "a recording" }

func (s *script) Send(_ context.Context, _ string, b []byte) error {
	if len(s.msgs) == 0 || s.msgs[0].FromClient != s.client || len(s.msgs[0].Data) != len(b) {
		return errScript
	}
	s.msgs, s.ours = s.msgs[1:], append(s.ours, append([]byte(nil), b...))
	return nil
}

func (s *script) Receive(_ context.Context, step string, b []byte) error {
	if len(s.msgs) == 0 || s.msgs[0].FromClient == s.client || len(s.msgs[0].Data) != len(b) {
		return errScript
	}
	copy(b, s.msgs[0].Data)
	s.msgs = s.msgs[1:]
	s.heard(step)
	return nil
}

func (s *script) Await(ctx context.Context, step string, b []byte) error {
	return s.Receive(ctx, step, b)
}

// staged is the connection manager's plug without connections.
type staged struct{ *cmPlug }

func (staged) leave(context.Context, *session, bool) error { return nil }

// The exchange over the connection manager: the same messages as the recorded ones,
// but for the numbers of the NIC.
func TestRecordedExchangesCM(t *testing.T) {
	for i, c := range []struct {
		name string
		test Test
	}{{"tool-ib_write_bw-R", writeBW}, {"tool-ib_send_bw-R", sendBW}} {
		msgs := toolstest.SendExchange(t, recordings, c.name)
		for _, client := range []bool{true, false} {
			cfg := Config{Test: c.test, Iters: 5, Size: 2048, MTU: 1024, CM: true, Common: tools.Common{Patience: toolstest.Patience}}
			if client {
				cfg.Host = "a recording"
			}
			require.NoError(t, cfg.fill())
			dev, err := openDevice(&cfg, netip.AddrFrom4([4]byte{127, 94, byte(120 + i), 1}))
			require.NoError(t, err)
			s := &session{cfg: &cfg, dev: dev, plug: staged{&cmPlug{connect: func(_ context.Context, s *session) (*hixl.Conn, error) {
				q, err := s.dev.nic.CreateQP(s.dev.qpConfig(s.cfg))
				return &hixl.Conn{QP: q}, err
			}}}}
			link := &script{client: client, msgs: msgs, heard: func(step string) {
				if step == "barrier after the traffic" {
					served(s)
				}
			}}
			s.ctl = control{link: link, client: client}
			s.drive = noTraffic(s)
			require.NoError(t, dev.close(s.run(t.Context())), "%s client %v", c.name, client)
			require.Empty(t, link.msgs)
			theirs := toolstest.Recorded(msgs, client)
			require.Equal(t, len(theirs), len(link.ours))
			for k, b := range link.ours {
				if !isReport(b) {
					require.Equal(t, maskedStruct(theirs[k]), maskedStruct(b), "message %d", k)
				}
			}
			checkReports(t, cfg, client, link.ours)
		}
	}
}

// maskedStruct hides what differs between the address structures of two NICs: all
// but LID, reads, and whether there are numbers at all. The original's padding is
// what lies in its memory.
func maskedStruct(b []byte) []byte {
	if len(b) != structLen {
		return b
	}
	out := append([]byte(nil), b...)
	for _, f := range [][2]int{{8, 20}, {20, 24}, {24, 32}, {32, 48}, {48, 52}, {52, 56}} {
		any := byte(0)
		for i := f[0]; i < f[1]; i++ {
			any |= out[i]
			out[i] = 0
		}
		if any != 0 && f[0] < 48 && f[0] != 20 { // ours is the SRQ's number, theirs a GID index
			out[f[0]] = 1
		}
	}
	return out
}
