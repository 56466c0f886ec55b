package bench

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int{
		"1": 1, "64": 64, "4k": 4096, "64KiB": 65536, "1MiB": 1 << 20, "1m": 1 << 20, "2 MB": 2 << 20, "100b": 100, "1GiB": 1 << 30,
	} {
		n, err := parseSize("size", s)
		require.NoError(t, err, s)
		require.Equal(t, want, n, s)
	}
	for _, s := range []string{"", "0", "-1", "4kk", "k", "1.5k", "2GiB", "99999999999", "0x10", "64 bytes", "1025m"} {
		_, err := parseSize("size", s)
		require.ErrorIs(t, err, ErrFlag, s)
		require.ErrorContains(t, err, "--size", s)
	}
}

func TestFormatSizeReadsBack(t *testing.T) {
	for _, n := range []int{1, 64, 100, 1024, 1536, 4096, 65536, 1 << 20, 1 << 30} {
		got, err := parseSize("size", formatSize(n))
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
}

func TestListsSet(t *testing.T) {
	var ops OpList
	require.NoError(t, ops.Set("read, write,read"))
	require.Equal(t, OpList{OpRead, OpWrite}, ops)
	require.Equal(t, "read,write", ops.String())
	require.EqualError(t, ops.Set("write,put"),
		`--op "put": allowed: write, read, send, write-imm, cas, faa; give one or several separated by commas; without the flag all are run`)
	require.Equal(t, "read,write", ops.String(), "a refused value changes nothing")

	sizes := SizeList{1}
	require.NoError(t, sizes.Set("64,4k,64KiB,1MiB"))
	require.Equal(t, SizeList{64, 4096, 65536, 1 << 20}, sizes)
	require.Error(t, sizes.Set("64,,4k"))

	depth := CountList{Flag: "depth", Min: 1, Max: 10, Zero: "a choice"}
	require.NoError(t, depth.Set("0,10"))
	require.Equal(t, []int{0, 10}, depth.Values)
	require.EqualError(t, depth.Set("11"), `--depth "11": allowed: 1 to 10, or 0 for a choice; give whole numbers, several separated by commas`)
	require.Error(t, depth.Set("x"))
	require.Error(t, (&CountList{Flag: "qps", Min: 1, Max: 2}).Set("0"))

	var base BaselineList
	require.NoError(t, base.Set("tcp,memcpy"))
	require.Equal(t, BaselineList{BaselineTCP, BaselineMemcpy}, base)
	require.NoError(t, base.Set("none"))
	require.NotNil(t, base)
	require.Equal(t, "none", base.String())
	require.ErrorIs(t, base.Set("tcp,none"), ErrFlag)
	require.ErrorIs(t, base.Set("udp"), ErrFlag)
}

func TestValidateRefuses(t *testing.T) {
	addr := netip.MustParseAddr
	for _, c := range []struct {
		name, says string
		cfg        Config
	}{
		{"loss above the bound", "--loss 0.5", Config{Faults: Faults{Loss: 0.5}}},
		{"negative corrupt", "--corrupt -1", Config{Faults: Faults{Corrupt: -1}}},
		{"size", "--size 0", Config{Sizes: []int{0}}},
		{"qps", "--qps 5000", Config{QPs: []int{5000}}},
		{"depth", "--depth -3", Config{Depths: []int{-3}}},
		{"mtu", "--mtu 1500", Config{MTUs: []int{1500}}},
		{"duration", "--duration 1ns", Config{Duration: 1}},
		{"rounds", "--rounds -1", Config{Rounds: -1}},
		{"passes", "--passes -1", Config{Passes: -1}},
		{"region", "--region 1KiB", Config{Region: 1024}},
		{"tiny region", "--region 8", Config{Region: 8, Sizes: []int{4}}},
		{"peer in process", "--in-process", Config{Peer: "host", InProcess: true}},
		{"same address", "--local", Config{Local: addr("127.0.0.3"), PeerLocal: addr("127.0.0.3")}},
		{"two families", "--local", Config{Local: addr("127.0.0.3"), PeerLocal: addr("::1")}},
		{"two addresses with a peer", "--local", Config{Peer: "host", Local: addr("127.0.0.3"), PeerLocal: addr("127.0.0.4")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.cfg.Validate()
			require.ErrorIs(t, err, ErrFlag)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "allowed: ")
		})
	}
	require.NoError(t, Config{}.Validate())
}

func TestDefaults(t *testing.T) {
	c := Config{}.withDefaults()
	require.Equal(t, "127.0.0.1", c.Local.String())
	require.Equal(t, "127.0.0.2", c.PeerLocal.String())
	require.NotZero(t, c.Seed)
	require.Equal(t, DefaultRegion, c.Region)
	require.Equal(t, []Baseline{BaselineTCP, BaselineMemcpy}, c.Baselines)
	require.Empty(t, Config{Baselines: []Baseline{}}.withDefaults().Baselines)
	require.Equal(t, 64<<20, Config{Sizes: []int{64 << 20}}.withDefaults().Region, "a message must fit")
	require.False(t, Config{Peer: "host"}.withDefaults().Local.IsValid(), "the control connection decides")
}

// The default run promises less than a minute; setting up and checking a round
// costs about as much as 50 ms more.
func TestDefaultRunFitsAMinute(t *testing.T) {
	c := Config{}.withDefaults()
	var sum time.Duration
	for _, ce := range c.cells() {
		b := c.budget(ce)
		sum += time.Duration(c.Rounds) * (b.warm + b.bandwidth + b.latency + 50*time.Millisecond)
	}
	for range (len(c.Sizes) + 1) * len(c.Baselines) {
		sum += time.Duration(c.Rounds) * (c.Duration/time.Duration(c.Rounds)*8/5 + 50*time.Millisecond)
	}
	require.Less(t, sum, 45*time.Second)
}

func TestCells(t *testing.T) {
	c := Config{Ops: []Op{OpWrite, OpCAS, OpRead}, Sizes: []int{64, 1 << 20}, QPs: []int{1, 2}}.withDefaults()
	var got []string
	for i, ce := range c.cells() {
		require.Equal(t, i, ce.ID)
		got = append(got, ce.Op.String()+" "+formatSize(ce.Size)+" "+formatSize(ce.QPs)+" "+formatSize(ce.Depth))
	}
	require.Equal(t, []string{
		"write 64 1 64", "write 64 2 64", "read 64 1 64", "read 64 2 64",
		"write 1MiB 1 8", "write 1MiB 2 8", "read 1MiB 1 8", "read 1MiB 2 8",
		"cas 8 1 64", "cas 8 2 64",
	}, got)
}

func TestBudget(t *testing.T) {
	ce := newCell(0, OpWrite, 1<<20, 1, 0, 0)
	require.Equal(t, 8, newCell(0, OpWrite, 4096, 1000, 0, 0).Depth, "many queue pairs share a socket")
	require.Equal(t, 4, newCell(0, OpWrite, 64<<20, 1, 0, 0).Depth)
	c := Config{Duration: 300 * time.Millisecond, Rounds: 3}.withDefaults()
	require.Equal(t, 100*time.Millisecond, c.budget(ce).bandwidth)
	require.EqualValues(t, 16, c.budget(ce).minMessages)
	c.Rounds = 300
	require.Equal(t, minSlice, c.budget(ce).bandwidth, "shorter would measure start and stop")

	// One packet in a thousand is lost: ten thousand packets must go.
	c.Faults.Loss = 0.001
	require.GreaterOrEqual(t, c.budget(ce).minMessages*256, uint64(10000))
	c.Faults.Loss = 1e-9
	require.LessOrEqual(t, c.budget(newCell(0, OpWrite, 64, 1, 0, 0)).minMessages, uint64(faultPackets+1), "bounded")
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"64", "4k", "64KiB", "1MiB", "0", "-1", "9223372036854775807g", "k"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := parseSize("size", s)
		if err != nil {
			require.ErrorIs(t, err, ErrFlag)
			return
		}
		require.True(t, n >= 1 && n <= MaxMessage, "%q gave %d", s, n)
	})
}
