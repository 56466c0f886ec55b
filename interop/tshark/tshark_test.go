package tshark

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/dump"
)

// recordings are the captures of real peers whose files begin alike.
func recordings(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "pcaps", "*.pcap"))
	require.NoError(t, err)
	var alike []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		if binary.LittleEndian.Uint32(b) == 0xa1b2c3d4 {
			alike = append(alike, f)
		}
	}
	require.NotEmpty(t, alike)
	return alike
}

func need(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Skip("no tshark: apt-get install tshark")
	}
}

func TestRecordings(t *testing.T) {
	need(t)
	r, err := Compare(t.Context(), recordings(t)...)
	require.NoError(t, err)
	require.Empty(t, r.Differences)
	require.Greater(t, r.Packets, 500)
}

func TestNotACapture(t *testing.T) {
	need(t)
	path := filepath.Join(t.TempDir(), "x.pcap")
	require.NoError(t, os.WriteFile(path, []byte("hello"), 0o600))
	_, err := Compare(t.Context(), path)
	require.Error(t, err)
}

// Any other value of any field is noticed.
func TestDifferences(t *testing.T) {
	f, err := os.Open(filepath.Join("..", "..", "testdata", "pcaps", "rc-faa.pcap"))
	require.NoError(t, err)
	defer f.Close()
	r, err := dump.NewReader(f)
	require.NoError(t, err)
	var p dump.Packet
	require.NoError(t, r.Next(&p))

	values := make([]string, len(fields))
	line := func() []string { return differences(p.Data, strings.Join(values, "\t")) }
	for i, d := range line() { // each says what it is here
		_, ours, there := strings.Cut(d, "here it is ")
		require.True(t, there, d)
		name := strings.Split(d, ": ")[1]
		for j, f := range fields {
			if f.name == name {
				values[j] = ours
			}
		}
		require.Less(t, i, len(fields))
	}
	require.Empty(t, line())
	for j := range fields {
		was := values[j]
		values[j] = "0x123456789"
		require.Len(t, line(), 1, fields[j].name)
		values[j] = was
	}
	require.Len(t, differences(p.Data, "1\t2"), 1)
	require.Len(t, differences([]byte("short"), strings.Join(values, "\t")), 1)
}
