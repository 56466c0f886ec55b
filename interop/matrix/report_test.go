//go:build linux

package matrix

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/interop/lab"
)

func TestReport(t *testing.T) {
	dir := t.TempDir()
	r := &Report{
		Image:  &lab.Image{Backend: lab.UML, Release: "6.1.1", Packages: map[string]string{"perftest": "4.5"}},
		Commit: "abc", Host: "6.2", Tshark: "4.0.17", Decoded: 10, Dump: Counts{10, 10, 9, 1, 0}, Date: time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC),
		Outcomes: []Outcome{
			{Case: "one", Role: Client, Peer: "rxe", Status: Pass, Detail: "fine", group: "First", traffic: Traffic{Packets: 10, Resent: 2}},
			{Case: "one", Role: Server, Peer: "rxe", Status: Fail, Detail: "a | b", group: "First"},
			{Case: "two", Role: None, Peer: "rxe", Status: Pass, Detail: "late", group: "Second", late: true},
		},
	}
	require.NoError(t, r.Write(dir))
	require.Equal(t, r.Outcomes[1:2], r.Failed())

	b, err := os.ReadFile(filepath.Join(dir, "report.json"))
	require.NoError(t, err)
	var got []map[string]string
	require.NoError(t, json.Unmarshal(b, &got))
	require.Len(t, got, 3)
	require.Equal(t, map[string]string{"case": "one", "role": "client", "peer": "rxe", "status": "pass", "detail": "fine"}, got[0])

	text, err := os.ReadFile(filepath.Join(dir, "INTEROP.md"))
	require.NoError(t, err)
	for _, want := range []string{
		"3 cells ran, 1 failed, 1 passed at another attempt than the first", "Date: 2026-03-04", "commit abc", "Linux 6.1.1", "perftest 4.5", "10 RoCE packets, 9 with a right ICRC, 1 with a wrong one, 0 malformed", "tshark 4.0.17 of all of them: 10 packets", "## First", "## Second", "perftest's `-R` over IPv6",
		"| one | pass | fail |  | client: 2 of 10 packets sent again server: a / b |", "| two |  |  | pass | none: late |",
	} {
		require.Contains(t, string(text), want)
	}
}

// A run on raw frames leaves the report of the one on sockets alone.
func TestReportOnRawFrames(t *testing.T) {
	dir := t.TempDir()
	r := &Report{Image: &lab.Image{}, Command: "go run it", Outcomes: []Outcome{
		{Case: "one", Role: Client, Carrier: Native.String(), Status: Pass, group: "AF_XDP native: First"},
	}}
	require.NoError(t, r.Write(dir))
	b, err := os.ReadFile(filepath.Join(dir, "xdp-report.json"))
	require.NoError(t, err)
	require.Contains(t, string(b), `"carrier": "AF_XDP native"`)
	text, err := os.ReadFile(filepath.Join(dir, "INTEROP-XDP.md"))
	require.NoError(t, err)
	require.Contains(t, string(text), "Written by `go run it`")
	require.Contains(t, string(text), "## AF_XDP native: First")
	require.NoFileExists(t, filepath.Join(dir, "report.json"))
}

func TestEmptyReport(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, (&Report{Image: &lab.Image{}}).Write(dir))
	b, err := os.ReadFile(filepath.Join(dir, "report.json"))
	require.NoError(t, err)
	require.Equal(t, "[]\n", string(b))
}
