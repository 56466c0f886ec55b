package bridge

import (
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

const (
	testWait = 2 * time.Minute
	testPoll = time.Millisecond
)

// through sends numbered packets and returns the numbers that arrive.
func through(t *testing.T, f Faults, n int) ([]roce.PSN, Counts) {
	s, w := plug(t, "one", "two")
	require.NoError(t, s.SetFaults("one", f))
	for i := range n {
		w[0].in <- packet(roce.OpSendOnly, roce.PSN(i), i%2 == 1)
	}
	settle(w[0])
	s.mu.Lock()
	s.ports[0].faults.flush(s)
	s.mu.Unlock()
	got := arrivals(t, w[0], w[1])
	return got, s.Counts()["one"]
}

func ascending(n int) []roce.PSN {
	all := make([]roce.PSN, n)
	for i := range all {
		all[i] = roce.PSN(i)
	}
	return all
}

func TestNoFaults(t *testing.T) {
	got, counts := through(t, Faults{}, 100)
	require.Equal(t, ascending(100), got)
	require.Zero(t, counts.Faults())
	require.EqualValues(t, 100, counts.RoCE)
}

func TestLoss(t *testing.T) {
	got, counts := through(t, Faults{Loss: 0.2}, 1000)
	require.NotZero(t, counts.Lost)
	require.Len(t, got, 1000-int(counts.Lost))
	require.InDelta(t, 200, counts.Lost, 60)
	again, _ := through(t, Faults{Loss: 0.2}, 1000)
	require.Equal(t, got, again, "the same seed loses the same packets")
	other, _ := through(t, Faults{Loss: 0.2, Seed: 9}, 1000)
	require.NotEqual(t, got, other)
}

func TestDuplication(t *testing.T) {
	got, counts := through(t, Faults{Duplicate: 0.2}, 1000)
	require.NotZero(t, counts.Duplicated)
	require.Len(t, got, 1000+int(counts.Duplicated))
	require.Equal(t, ascending(1000), slices.Compact(got))
}

func TestReordering(t *testing.T) {
	got, counts := through(t, Faults{Reorder: 0.2}, 1000)
	require.NotZero(t, counts.Reordered)
	require.Len(t, got, 1000)
	require.NotEqual(t, ascending(1000), got)
	slices.Sort(got)
	require.Equal(t, ascending(1000), got, "nothing is lost")
}

// A packet that is held leaves although nothing follows it.
func TestHeldPacketLeaves(t *testing.T) {
	s, w := plug(t, "one", "two")
	require.NoError(t, s.SetFaults("one", Faults{Reorder: 1}))
	w[0].in <- packet(roce.OpSendOnly, 3, false)
	require.EqualValues(t, 3, psn(t, <-w[1].out))
}

// Exactly one bit of what the ICRC covers changes, and nothing below notices.
func TestCorruption(t *testing.T) {
	for _, six := range []bool{false, true} {
		s, w := plug(t, "one", "two")
		require.NoError(t, s.SetFaults("", Faults{Corrupt: 1}))
		for i := range 50 {
			sent := packet(roce.OpSendOnly, roce.PSN(i), six)
			w[0].in <- sent
			got := <-w[1].out
			var before, after roce.Frame
			require.NoError(t, roce.DecodeFrame(roce.LinkEthernet, sent, &before))
			require.NoError(t, roce.DecodeFrame(roce.LinkEthernet, got, &after))
			require.Equal(t, before.Headers, after.Headers)
			flipped := 0
			for j := range before.Payload {
				flipped += bits.OnesCount8(before.Payload[j] ^ after.Payload[j])
			}
			require.Equal(t, 1, flipped)
			if six {
				udp := after.IP[ipv6Len:]
				require.Equal(t, roce.UDPChecksum(after.Src, after.Dst, udp), uint16(udp[6])<<8|uint16(udp[7]))
			}
		}
		require.EqualValues(t, 50, s.Total().Corrupted)
	}
}

func TestRules(t *testing.T) {
	tests := []struct {
		name string
		rule Rule
		want []roce.PSN
	}{
		{"the third", Rule{Skip: 2, Count: 1}, []roce.PSN{0, 1, 3, 4, 5}},
		{"all acknowledgements", Rule{Match: Opcodes(roce.OpAcknowledge)}, []roce.PSN{0, 2, 4}},
		{"one acknowledgement", Rule{Match: Opcodes(roce.OpAcknowledge), Skip: 1, Count: 1}, []roce.PSN{0, 1, 2, 4, 5}},
		{"from elsewhere", Rule{From: "two"}, []roce.PSN{0, 1, 2, 3, 4, 5}},
		{"all", Rule{From: "one"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, w := plug(t, "one", "two")
			s.Drop(tt.rule)
			for i := range 6 {
				op := roce.OpSendOnly
				if i%2 == 1 {
					op = roce.OpAcknowledge
				}
				w[0].in <- packet(op, roce.PSN(i), false)
			}
			require.Equal(t, tt.want, arrivals(t, w[0], w[1]))
			require.EqualValues(t, 6-len(tt.want), s.Total().Ruled)
		})
	}
}

func TestReset(t *testing.T) {
	s, w := plug(t, "one", "two")
	require.NoError(t, s.SetFaults("", Faults{Loss: 1}))
	s.Drop(Rule{})
	s.Reset()
	w[0].in <- packet(roce.OpSendOnly, 3, false)
	require.EqualValues(t, 3, psn(t, <-w[1].out))
	require.Zero(t, s.Total().Faults())
}

func TestText(t *testing.T) {
	require.Equal(t, "none", Faults{}.String())
	require.Equal(t, "1 % loss, 2 % reordering, 0.1 % corruption", Faults{Loss: 0.01, Reorder: 0.02, Corrupt: 0.001}.String())
	require.Equal(t, "9 packets, 2 lost, 1 dropped by rule", Counts{RoCE: 9, Lost: 2, Ruled: 1}.String())
}
