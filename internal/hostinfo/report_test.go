package hostinfo

import (
	"bytes"
	"encoding/json"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProbeAnswersEverything(t *testing.T) {
	r := Probe()

	require.Equal(t, runtime.GOOS, r.System.OS)
	require.Equal(t, runtime.GOMAXPROCS(0), r.System.Cores)
	for _, name := range []string{
		"cores", "udp_gso", "udp_gro", "mmsg", "af_xdp", "port_4791_loopback", "port_4791_any4", "port_4791_any6", "ipv6", "cpu_crc",
	} {
		c, ok := r.Check(name)
		require.True(t, ok, name)
		require.NotEmpty(t, c.Value, name)
	}
	_, ok := r.Check("flying")
	require.False(t, ok)
}

// What is missing comes with its price and the way to it, what is there does
// not; names are keys for programs.
func TestAdviceIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Probe().Checks {
		require.Falsef(t, seen[c.Name], "two checks named %s", c.Name)
		seen[c.Name] = true
		require.Regexp(t, `^[a-z0-9_]+$`, c.Name)
		require.Equal(t, c.State != OK, c.Cost != "", c.Name)
		require.Equal(t, c.State != OK, c.Remedy != "", c.Name)
	}
}

func TestTextShowsEveryCheck(t *testing.T) {
	r := Probe()
	r.Checks = append(r.Checks, Check{Name: "wings", Value: "none"}.needs(Missing, "no flying", "grow some"))
	var b strings.Builder
	require.NoError(t, r.WriteText(&b))

	for _, c := range r.Checks {
		require.Regexp(t, `(?m)^`+string(c.State)+` +`+c.Name+` `, b.String())
	}
	require.Contains(t, b.String(), "costs: no flying\n")
	require.Contains(t, b.String(), "to get it: grow some\n")
	for _, i := range r.Interfaces {
		require.Contains(t, b.String(), "  "+i.Name)
	}
}

func TestJSONRoundTrip(t *testing.T) {
	r := Probe()
	b, err := json.Marshal(r)
	require.NoError(t, err)
	var back Report
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&back))
	require.Equal(t, *r, back)
}

func TestInterfacesAreTheHosts(t *testing.T) {
	want, err := net.Interfaces()
	require.NoError(t, err)
	got := interfaces()
	require.Len(t, got, len(want))
	for i, w := range want {
		require.Equal(t, w.Name, got[i].Name)
		require.Equal(t, w.MTU, got[i].MTU)
		require.Equal(t, w.Flags&net.FlagUp != 0, got[i].Up)
	}
}

// §1.12: the largest path MTU at most the device's MTU less 96.
func TestPathMTUOfInterface(t *testing.T) {
	tests := []struct {
		mtu, path    int
		cost, remedy string
	}{
		{65536, 4096, "", ""},
		{9000, 4096, "", ""},
		{4192, 4096, "", ""},
		{4191, 2048, "2 packets where", "to 4192 or more"},
		{1500, 1024, "4 packets where", "ip link set dev eth7 mtu 4192"},
		{352, 256, "16 packets where", "to 4192 or more"},
		{351, 0, "no RoCEv2 packet fits", "to 352 or more"},
	}
	for _, tt := range tests {
		n := newInterface("eth7", tt.mtu, true)
		require.Equal(t, tt.path, n.PathMTU, tt.mtu)
		require.Contains(t, n.Cost, tt.cost)
		require.Contains(t, n.Remedy, tt.remedy)
		require.Equal(t, tt.cost == "", n.Cost == "", tt.mtu)

		down := newInterface("eth7", tt.mtu, false)
		require.Equal(t, tt.path, down.PathMTU)
		require.Empty(t, down.Cost+down.Remedy, "no advice for an interface that is down")
	}
}

func TestCPUJudgement(t *testing.T) {
	all := []feature{{"A", true}, {"B", true}}
	some := []feature{{"A", true}, {"B", false}}
	none := []feature{{"A", false}, {"B", false}}

	require.Equal(t, Check{Name: "cpu_crc", State: OK, Value: "A B"}, judgeCPU("x", all))
	require.Equal(t, Limited, judgeCPU("x", some).State)
	require.Equal(t, "A; without B", judgeCPU("x", some).Value)
	require.Equal(t, Missing, judgeCPU("x", none).State)
	require.Equal(t, Unknown, judgeCPU("x", nil).State)
	require.Len(t, cpuFeatures("arm64"), 2)
	require.Len(t, cpuFeatures("amd64"), 5)
}

func TestCores(t *testing.T) {
	require.Equal(t, Limited, coresCheck(1).State)
	require.Equal(t, OK, coresCheck(2).State)
}
