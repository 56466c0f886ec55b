package bench

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What the programs printed on a real machine.
func TestProgramsOutputs(t *testing.T) {
	for _, c := range []struct {
		file    string
		parse   func([]byte, int, uint64) (figures, error)
		size    int
		n       uint64
		want    figures
		gbPerS  float64
		oneWay  time.Duration
		corrupt []string
	}{
		{file: "ucx-put.csv", parse: ucxPut.parse, size: 64, n: 100000, gbPerS: 0.0453, oneWay: 1412 * time.Nanosecond},
		{file: "ucx-put-latency.csv", parse: ucxPut.parse, size: 8, n: 20000, gbPerS: 0.000385, oneWay: 20793 * time.Nanosecond},
		{file: "ucx-get.csv", parse: ucxGet.parse, size: 1 << 20, n: 500, gbPerS: 0.327, oneWay: 1600147 * time.Nanosecond},
		{file: "iperf3.json", parse: iperf3.parse, size: 1 << 20, n: 950, gbPerS: 3.87},
		{file: "fi_pingpong.txt", parse: libfabric.parse, size: 64 << 10, n: 1000, gbPerS: 0.0466, oneWay: 1405350 * time.Nanosecond},
	} {
		t.Run(c.file, func(t *testing.T) {
			out, err := os.ReadFile(filepath.Join("testdata", "programs", c.file))
			require.NoError(t, err)
			f, err := c.parse(out, c.size, c.n)
			require.NoError(t, err)
			got := float64(f.messages) * float64(c.size) / float64(f.elapsed)
			require.InEpsilon(t, c.gbPerS, got, 0.01)
			require.Equal(t, c.oneWay, f.oneWay)

			// Whatever is cut off is refused or told, and nothing panics.
			for i := range out[:len(out)*2/3] {
				_, err := c.parse(out[:i], c.size, c.n)
				var bad *outputError
				require.ErrorAs(t, err, &bad, "%q", out[:i])
				require.NotEmpty(t, err.Error())
			}
		})
	}
}

func TestProgramsOutputsThatAreWrong(t *testing.T) {
	const head = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
	for name, c := range map[string]struct {
		p    *program
		out  string
		says string
	}{
		"ucx, no figures":       {&ucxPut, head, "no figures"},
		"ucx, words":            {&ucxPut, head + "1,2,3,x,5,6,7,8\n", "no number as overall_lat"},
		"ucx, short line":       {&ucxPut, head + "1,2,3\n", "no figures"},
		"ucx, nothing measured": {&ucxPut, head + "0,0,0,0,0,0,0,0\n", "nothing measured"},
		"iperf3, its error":     {&iperf3, `{"error":"unable to connect"}`, "unable to connect"},
		"iperf3, nothing":       {&iperf3, `{"end":{}}`, "nothing measured"},
		"libfabric, words":      {&libfabric, "bytes\nx x x x x x x x\n", "no time a transfer"},
		"libfabric, no line":    {&libfabric, "bytes  #sent\n", "no table"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.p.parse([]byte(c.out), 64, 1)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestProgramArguments(t *testing.T) {
	require.Equal(t, []string{"127.0.0.1", "-p", "13337", "-t", "ucp_put_bw", "-s", "64", "-n", "1000", "-w", "10", "-f", "-v"}, ucxPut.client(64, 1000))
	require.Contains(t, ucxPut.latency(8, 10), "ucp_put_lat")
	require.Contains(t, ucxGet.client(8, 10), "ucp_get")
	require.Contains(t, iperf3.client(4<<20, 3), "1048576", "its longest block")
	require.Contains(t, iperf3.client(4<<20, 3), "12582912")
	require.Subset(t, libfabric.server(64, 5), []string{"-S", "64", "-I", "5"})
	require.Subset(t, libfabric.client(64, 5), []string{"-S", "64", "-I", "5", "127.0.0.1"})
}

func TestForeignMessagesFollowTheRate(t *testing.T) {
	m := foreignMover{size: 1 << 20}
	require.EqualValues(t, 64, m.messages(time.Second, 0, 0))
	require.EqualValues(t, 500, m.messages(time.Second/2, 1000, 0))
	require.EqualValues(t, minForeign, m.messages(time.Second, 0.1, 0))
	require.EqualValues(t, maxForeign, m.messages(time.Hour, 1e9, 0))
	require.EqualValues(t, 700, m.messages(time.Second, 0, 700))
	require.EqualValues(t, 700, m.messages(time.Second, 0.1, 700))
	require.EqualValues(t, 1000, m.messages(time.Second, 1000, 700))
}

// A short run of puts would measure how long the last of them is waited for.
func TestUCXPutsAreMany(t *testing.T) {
	for size, want := range map[int]uint64{64: 20_000, 64 << 10: 16 << 10, 1 << 20: 1024, 1 << 30: 1} {
		require.Equal(t, want, ucxPut.least(size))
	}
	require.Nil(t, ucxGet.least)
}
