package rc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/cq"
	"github.com/gohixl/hixl/roce"
)

// requireEnd compares how things stand at the end: completions, memory, and
// whether the connection has failed.
func (c *connection) requireEnd(t *testing.T, end side, o *outcome, a *allowance) {
	t.Helper()
	after := c.after(t, end)
	require.Equal(t, after, o.memory[:len(after)], "memory")
	if c.script == nil {
		c.requireSuccess(t, end, o)
		return
	}
	s := c.script
	if s.memory[end] != nil && littleEndian {
		require.Equal(t, s.memory[end], o.memory[:32], "memory that the %v end printed", end)
	}
	ours := printed(o.sent)
	if end == passive {
		ours = printed(o.received)
		require.Empty(t, o.sent)
		if len(ours) == 1 && ours[0] == "wr 0 status 1" && s.printed[end][0] == "wr 0 status 2" && a.use(shortReceive) {
			ours[0] = "wr 0 status 2"
		}
	}
	require.Equal(t, s.printed[end], ours, "completions")
	fatal := s.complete[end] < len(s.printed[end])
	if end == passive { // an error without a receive is not printed: the NAK tells
		for i := range o.responses {
			if o.responses[i].p.AETH.Syndrome.Kind() == roce.AckNAK && o.responses[i].p.AETH.Syndrome != roce.SynNakSeq {
				fatal = true
			}
		}
	}
	require.Equal(t, fatal, o.failed, "in the error state")
}

func printed(list []cq.Completion) []string {
	var out []string
	for i := range list {
		out = append(out, show(&list[i]))
	}
	return out
}

// requireSuccess: every work request and every receive has succeeded.
func (c *connection) requireSuccess(t *testing.T, end side, o *outcome) {
	t.Helper()
	require.False(t, o.failed)
	require.Len(t, o.sent, len(c.sends[end]))
	for i, done := range o.sent {
		require.Equal(t, cq.StatusSuccess, done.Status)
		require.Equal(t, uint64(i), done.WRID)
		require.Equal(t, c.sends[end][i].op.Completion(), done.Opcode)
		require.Equal(t, uint32(c.sends[end][i].length), done.ByteLen)
	}
	receives := o.received
	for i := range c.sends[end.other()] {
		m := &c.sends[end.other()][i]
		if !m.consumes() {
			continue
		}
		require.NotEmpty(t, receives)
		require.Equal(t, cq.StatusSuccess, receives[0].Status)
		require.Equal(t, uint32(m.length), receives[0].ByteLen)
		receives = receives[1:]
	}
	require.Empty(t, receives)
}
