package bench

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTallyTellsTheResult(t *testing.T) {
	for _, c := range []struct {
		t    tally
		err  error
		open int
		want string
	}{
		{tally{}, nil, 0, "nothing was asked for"},
		{tally{cells: 2, rounds: 6}, nil, 0, "finished, 6 rounds verified"},
		{tally{cells: 2, rounds: 5}, nil, 1, "the requester left before the end; 5 rounds verified"},
		{tally{cells: 2, rounds: 5}, errors.New("reset"), 1, "broke off: reset; 5 rounds verified"},
		{tally{cells: 2, rounds: 1, first: errors.New("wrong\nbytes")}, errors.New("reset"), 1, "failed: wrong bytes; 1 round verified"},
	} {
		require.Equal(t, c.want, c.t.result(c.err, c.open))
	}
	var x tally
	x.failed(errors.New("a"))
	x.failed(errors.New("b"))
	require.EqualError(t, x.first, "a")
}
