//go:build linux

package matrix

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func recording(name string) string {
	return filepath.Join("..", "..", "testdata", "pcaps", name+".pcap")
}

func TestInspect(t *testing.T) {
	for name, want := range map[string]Traffic{
		"rc-write":         {Packets: 6},
		"loss-ack-write":   {Packets: 4, Resent: 1},
		"loss-read-middle": {Packets: 9, Resent: 1},
		"loss-read-req":    {Packets: 6, Resent: 1},
		"rc-write-psnwrap": {Packets: 7},
	} {
		got, err := Inspect(recording(name))
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}
}

func TestInspectFindsDamage(t *testing.T) {
	b, err := os.ReadFile(recording("rc-write"))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "x.pcap")
	b[len(b)-1] ^= 1 // of the last packet's ICRC
	require.NoError(t, os.WriteFile(path, b, 0o600))
	_, err = Inspect(path)
	require.ErrorIs(t, err, ErrDamage)
	require.ErrorContains(t, err, "wrong ICRC")
}

func TestCounts(t *testing.T) {
	c, err := parseCounts("packets=6 roce=6 icrc_ok=6 icrc_bad=0 malformed=0")
	require.NoError(t, err)
	require.Equal(t, Counts{6, 6, 6, 0, 0}, c)
	require.True(t, c.fine())
	for _, line := range []string{"packets=6 roce=6 icrc_ok=5 icrc_bad=1 malformed=0", "packets=6 roce=5 icrc_ok=5 icrc_bad=0 malformed=1", "packets=6 roce=5 icrc_ok=5 icrc_bad=0 malformed=0"} {
		c.add(c)
		d, err := parseCounts(line)
		require.NoError(t, err)
		require.False(t, d.fine(), line)
		c.add(d)
		require.False(t, c.fine(), line)
	}
	_, err = parseCounts("no such file")
	require.ErrorIs(t, err, ErrWrong)
}
