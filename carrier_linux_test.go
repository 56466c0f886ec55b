package hixl_test

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/transport"
	"github.com/gohixl/hixl/transport/udp"
	"github.com/gohixl/hixl/transport/xdp"
	"github.com/gohixl/hixl/transport/xdp/veth"
)

// carrierEnv has the tests that open NICs on loopback addresses open them at the
// ends of a link of their own instead, on what it says: the carriers of the two
// ends and the link's MTU, such as "native,udp,1500".
const carrierEnv = "HIXL_TEST_CARRIER"

// carriers are what an end may be.
var carriers = map[string]func(addr netip.Addr) (transport.Conn, error){
	"udp": func(a netip.Addr) (transport.Conn, error) { return udp.Open(a, udp.Config{}) },
	"native": func(a netip.Addr) (transport.Conn, error) {
		return xdp.Open(a, xdp.Config{Mode: xdp.ModeNative})
	},
	"generic": func(a netip.Addr) (transport.Conn, error) {
		return xdp.Open(a, xdp.Config{Mode: xdp.ModeGeneric})
	},
}

// wires are the links of the running tests.
var wires struct {
	sync.Mutex
	of map[testing.TB]*wired // guarded
}

type wired struct {
	pair *veth.Pair
	ends []netip.Addr // the addresses that the test asked for, by end
}

// carried returns how a test's NIC is opened: as it says, or with the transport
// that carrierEnv names.
func carried(t testing.TB, cfg hixl.Config) hixl.Config {
	t.Helper()
	kinds := strings.Split(os.Getenv(carrierEnv), ",")
	if len(kinds) != 3 || !cfg.Address.IsLoopback() || cfg.UDP != (udp.Config{}) {
		return cfg
	}
	w := wireOf(t, kinds[2])
	end := len(w.ends)
	for i, a := range w.ends {
		if a == cfg.Address {
			end = i
		}
	}
	if end == len(w.ends) {
		w.ends = append(w.ends, cfg.Address)
	}
	if end > 1 {
		t.Skip("has more than two addresses, and a link has two ends")
	}
	addr := veth.Addrs4[end]
	if cfg.Address.Is6() {
		addr = veth.Addrs6[end]
	}
	require.NoError(t, w.pair.Do(end, func() (err error) {
		cfg.Transport, err = carriers[kinds[end]](addr)
		return err
	}))
	cfg.Address = netip.Addr{}
	return cfg
}

func wireOf(t testing.TB, mtu string) *wired {
	wires.Lock()
	defer wires.Unlock()
	if w := wires.of[t]; w != nil {
		return w
	}
	n, err := strconv.Atoi(mtu)
	require.NoError(t, err)
	p, err := veth.New(veth.Config{MTU: n})
	require.NoError(t, err)
	w := &wired{pair: p}
	if wires.of == nil {
		wires.of = make(map[testing.TB]*wired)
	}
	wires.of[t] = w
	t.Cleanup(func() {
		wires.Lock()
		defer wires.Unlock()
		delete(wires.of, t)
		require.NoError(t, p.Close())
	})
	return w
}

// What holds on sockets holds on raw frames: the tests of this package, in a process
// of their own, with NICs at the ends of virtual links.
func TestOnXDP(t *testing.T) {
	if os.Getenv(carrierEnv) != "" {
		t.Skip("this is one of its runs")
	}
	p, err := veth.New(veth.Config{})
	if errors.Is(err, unix.EPERM) {
		t.Skipf("needs root: %v", err)
	}
	require.NoError(t, err)
	require.NoError(t, p.Close())
	exe, err := os.Executable()
	require.NoError(t, err)
	for _, kind := range []string{"native,native,1500", "native,native,9000", "generic,generic,1500", "generic,generic,9000", "native,udp,9000", "udp,generic,1500"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), exe, "-test.run", onWire, "-test.v")
			cmd.Env = append(os.Environ(), carrierEnv+"="+kind)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "--- PASS: TestOperations")
		})
	}
}

// onWire matches the tests that open sockets and do not depend on what loopback
// addresses and their MTU are.
const onWire = "^Test(Operations|Close|ConnectErrors|ConnectLoop|Dial|ContextsEndWaiting|DialConcurrently|" +
	"Datagrams|UnreliableConnection|PostOnClosedQueuePair)$"
