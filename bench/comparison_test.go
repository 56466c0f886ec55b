package bench

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMarkdownOfAReport(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, goldenReport().WriteMarkdown(&b))
	require.Contains(t, b.String(), Machine())
	require.Contains(t, b.String(), "\n| write | tcp | - | 0.355<br>0.300..0.400 | ")
	columns := 0
	for line := range bytes.Lines(b.Bytes()) {
		switch n := bytes.Count(line, []byte("|")); {
		case !bytes.HasPrefix(line, []byte("|")):
			columns = 0 // of the table that follows
		case columns == 0:
			columns = n
		default:
			require.Equal(t, columns, n, "%s", line)
		}
	}
}

// What a run did not measure takes no room.
func TestComparisonOfLittle(t *testing.T) {
	r := newReport(Config{}.withDefaults())
	r.Results = []Result{
		{Op: OpWrite, Size: 64, QPs: 1, GBPerS: 1, LatencyUS: Latency{P50: 2}},
		{Op: OpWrite, Size: 64, QPs: 2, GBPerS: 3},
	}
	r.Interrupted = true
	var b bytes.Buffer
	require.NoError(t, r.WriteComparison(&b))
	require.NotContains(t, b.String(), "theirs")
	require.Contains(t, b.String(), "GB/s\nwho           64\nhixl write  1.00\n\n", "of several the first")
	require.Contains(t, b.String(), "hixl write  1.00\n\nCPU", "no second line without a second figure")
	require.Contains(t, b.String(), "Interrupted: ")
}

func TestMachineTellsGo(t *testing.T) { require.Contains(t, Machine(), "go1.") }
