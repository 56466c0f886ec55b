//go:build linux

package matrix

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/interop/verbs"
)

func TestJudgeVerbs(t *testing.T) {
	const good = "wc id=0 status=0 op=0\nslots final=1 initial=0 mixed=0\npeer wc id=0 status=0 op=128 len=64 imm=cafe0000\npeer slots final=1 initial=0 mixed=0\n"
	const refused = "wc id=0 status=10\nslots final=1 initial=0 mixed=0\npeer slots final=0 initial=1 mixed=0\n"
	tests := []struct {
		name, words string
		want        Want
		seen        string
		rxe         bool
		wrong       string
	}{
		{"success", "op=send-imm", Want{}, good, true, ""},
		{"no completion", "op=send-imm", Want{}, strings.TrimPrefix(good, "wc id=0 status=0 op=0\n"), true, "0 of 1 operations"},
		{"failed", "op=send-imm", Want{}, strings.Replace(good, "status=0 op=0", "status=12", 1), true, "completion 0"},
		{"memory", "op=send-imm", Want{}, strings.Replace(good, "peer slots final=1 initial=0 mixed=0", "peer slots final=0 initial=0 mixed=1", 1), true, "passive end's memory"},
		{"own memory", "op=send-imm", Want{}, strings.Replace(good, "slots final=1 initial=0", "slots final=0 initial=1", 1), true, "active end's memory"},
		{"length", "op=send-imm", Want{}, strings.Replace(good, "len=64", "len=63", 1), true, "receive 0"},
		{"immediate", "op=send-imm", Want{}, strings.Replace(good, "cafe0000", "fecacafe", 1), true, "receive 0"},
		{"an immediate of nobody", "op=send", Want{}, good, true, "receive 0"},
		{"no receive", "op=send-imm", Want{}, strings.Replace(good, "peer wc id=0 status=0 op=128 len=64 imm=cafe0000\n", "", 1), true, "0 of 1 receives"},
		{"a receive too many", "op=write", Want{}, good, true, "1 of 0 receives"},
		{"refused", "op=write wrong-key=1", Want{Status: 10}, refused, true, ""},
		{"not refused", "op=write wrong-key=1", Want{Status: 10}, good, true, "status 10 expected"},
		{"refused otherwise", "op=write", Want{Status: 9}, refused, true, "status 9 expected"},
		{"refused but written", "op=write", Want{Status: 10}, strings.Replace(refused, "peer slots final=0 initial=1", "peer slots final=1 initial=0", 1), true, "touched"},
		{"as rxe refuses", "op=send recv=1", Want{Status: 9, PeerStatus: 1, RxeStatus: 10, RxePeerStatus: 2}, refused + "peer wc id=0 status=2\n", true, ""},
		{"as rxe does not", "op=send recv=1", Want{Status: 9, PeerStatus: 1, RxeStatus: 10, RxePeerStatus: 2}, refused + "peer wc id=0 status=2\n", false, "status 9 expected"},
		{"nothing", "op=send-imm", Want{Nothing: true}, good, true, "something arrived"},
		{"invalidated", "op=send-inv", Want{}, strings.Replace(good, " imm=cafe0000", " inv=right", 1), false, ""},
		{"not invalidated", "op=send-inv", Want{}, strings.Replace(good, " imm=cafe0000", "", 1), false, "receive 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := verbs.Parse(tt.words)
			require.NoError(t, err)
			r, err := verbs.ParseResult(tt.seen)
			require.NoError(t, err)
			err = tt.want.judge(c, r, tt.rxe)
			if tt.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrWrong)
			require.ErrorContains(t, err, tt.wrong)
		})
	}
}

func TestJudgeTool(t *testing.T) {
	failed := errors.New("exit status 1")
	require.NoError(t, (&Tool{}).judge("client", "10 iters in 1 s", nil, `\d+ iters`))
	require.ErrorIs(t, (&Tool{}).judge("client", "", nil, `\d+ iters`), ErrWrong)
	require.ErrorIs(t, (&Tool{}).judge("client", "10 iters", failed, `\d+ iters`), ErrWrong)
	require.NoError(t, (&Tool{Fails: true}).judge("client", "REJ", failed, `REJ`))
	require.ErrorIs(t, (&Tool{Fails: true}).judge("client", "REJ", nil, `REJ`), ErrWrong)
	for _, said := range []string{"invalid data in page 3", "data mismatch!", "message 2: byte 5 of 9 is 0x41, not 0x42", "hixl-bench: verification failed: write of 64 bytes"} {
		require.ErrorIs(t, (&Tool{}).judge("client", said, failed, ""), ErrDamage)
	}
	require.NotErrorIs(t, (&Tool{}).judge("client", "timeout", failed, ""), ErrDamage)
	require.Equal(t, "10 iters", result("took: 10  iters\nin", `\d+\s+iters`))
	require.Len(t, brief(strings.Repeat("x ", 1000)), 405)
}

func TestJudgeTrains(t *testing.T) {
	write, read := verbs.Case{Op: "write"}, verbs.Case{Op: "read"}
	on, off := &Cell{Trains: "on"}, &Cell{Trains: "off"}
	b := new(Bench)
	require.NoError(t, b.judgeTrains(on, write, Client, 3))
	require.Error(t, b.judgeTrains(on, write, Client, 0))
	require.NoError(t, b.judgeTrains(on, write, Server, 0))
	require.Error(t, b.judgeTrains(on, read, Server, 0))
	require.Error(t, b.judgeTrains(off, write, Client, 1))
	require.NoError(t, b.judgeTrains(off, write, Client, 0))
	require.NoError(t, b.judgeTrains(&Cell{}, write, Client, 1))
	b.carrier = Native
	require.NoError(t, b.judgeTrains(on, write, Client, 0))
	require.Error(t, b.judgeTrains(on, write, Client, 1))
}
