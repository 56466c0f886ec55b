//go:build linux

package matrix

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/interop/verbs"
)

func TestTable(t *testing.T) {
	seen := make(map[string]bool)
	smoke := 0
	for _, c := range Table() {
		require.False(t, seen[c.Name], "twice: %s", c.Name)
		seen[c.Name] = true
		require.NotEmpty(t, c.Group, c.Name)
		require.Contains(t, []int{4, 6}, c.family(), c.Name)
		require.Equal(t, c.family() == 6, strings.Contains(c.Name, "IPv6"), c.Name)
		ways := 0
		for _, has := range []bool{c.Verbs != "", c.Tool != nil, c.Do != nil} {
			if has {
				ways++
			}
		}
		require.Equal(t, 1, ways, c.Name)
		if c.Verbs != "" {
			vc, err := verbs.Parse(c.Verbs)
			require.NoError(t, err, c.Name)
			require.Zero(t, vc.WrongKey && c.Want.Status == 0, c.Name)
		}
		if c.Tool != nil {
			checkTool(t, &c)
		}
		if c.Smoke {
			smoke++
		}
	}
	require.Greater(t, len(seen), 300)
	require.Greater(t, smoke, 10)
}

func checkTool(t *testing.T, c *Cell) {
	for _, pattern := range []string{c.Tool.Says, c.Tool.ServerSays} {
		_, err := regexp.Compile(pattern)
		require.NoError(t, err, c.Name)
	}
	values := map[string]string{"self": "S", "peer": "P", "tcp": "T", "gid": "G"}
	for _, role := range c.roles() {
		lines := []string{c.Tool.Theirs.Server, c.Tool.Ours.Client}
		switch role {
		case Server:
			lines = []string{c.Tool.Ours.Server, c.Tool.Theirs.Client}
		case None:
			lines = []string{c.Tool.Theirs.Server, c.Tool.Theirs.Client}
		case Client:
		}
		for _, line := range lines {
			require.NotEmpty(t, line, c.Name)
			require.NotContains(t, fill(line, values), "{", c.Name)
		}
		require.NotEqual(t, lines[0], lines[1], c.Name)
	}
}

// A capture of any cell has a name of its own.
func TestFileNames(t *testing.T) {
	seen := make(map[string]string)
	for _, c := range Table() {
		f := fileName(c.Name)
		require.Empty(t, seen[f], c.Name)
		seen[f] = c.Name
		require.Regexp(t, `^[A-Za-z0-9.-]+$`, f)
		require.Less(t, len(f), 200)
	}
}

func TestSelection(t *testing.T) {
	c := Cell{Name: "rping, IPv6"}
	require.True(t, Selection{}.takes(&c, Client))
	require.False(t, Selection{Smoke: true}.takes(&c, Client))
	require.True(t, Selection{Match: regexp.MustCompile(`rping.*\[client`)}.takes(&c, Client))
	require.False(t, Selection{Match: regexp.MustCompile(`rping.*\[client`)}.takes(&c, Server))
	all, some := List(Selection{}), List(Selection{Smoke: true})
	require.Subset(t, all, some)
	require.Greater(t, len(all), 2*len(some))
	xdp := List(Selection{Carriers: []Carrier{Native, Generic}})
	require.Contains(t, xdp, "RDMA CM: rping [server] on AF_XDP generic")
	for _, name := range xdp {
		require.NotRegexp(t, `over veth|\[none\]`, name)
	}
}

func TestParseCarriers(t *testing.T) {
	for list, want := range map[string][]Carrier{"": {Sockets}, "native": {Native}, "generic,native": {Generic, Native}} {
		got, err := ParseCarriers(list)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, list := range []string{"udp", "native,", "native,native"} {
		_, err := ParseCarriers(list)
		require.ErrorContains(t, err, "no list of carriers")
	}
}
