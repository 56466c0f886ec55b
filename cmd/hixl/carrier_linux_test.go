package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gohixl/hixl/transport/xdp/veth"
)

// toolEnv has a run of this test be the program instead, to be had in a namespace.
const toolEnv = "HIXL_TEST_TOOL"

func TestMain(m *testing.M) {
	if os.Getenv(toolEnv) != "" {
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// onXDP is the flags of an end.
var onXDP = map[string]string{
	"udp":     "",
	"native":  " --transport xdp --xdp-mode native",
	"generic": " --transport xdp --xdp-mode generic",
}

// Every tool at the ends of a virtual link, on raw frames at both, or at one and on
// sockets at the other: a flag more, and nothing else changes.
func TestToolsOnXDP(t *testing.T) {
	p, err := veth.New(veth.Config{})
	if errors.Is(err, unix.EPERM) {
		t.Skipf("needs root: %v", err)
	}
	require.NoError(t, err)
	require.NoError(t, p.Close())
	for _, kind := range []string{"native,native,1500", "native,native,9000", "generic,generic,1500", "generic,generic,9000", "native,udp,9000", "udp,generic,1500"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ends := strings.Split(kind, ",")
			mtu, err := strconv.Atoi(ends[2])
			require.NoError(t, err)
			p, err := veth.New(veth.Config{MTU: mtu})
			require.NoError(t, err)
			defer func() { require.NoError(t, p.Close()) }()
			for _, c := range []struct{ server, client, want string }{
				{"pingpong rc -n 10 -s 20000 -c", "pingpong rc -n 10 -s 20000 -c SERVER4", "10 iters in "},
				{"pingpong uc -n 10 -c", "pingpong uc -n 10 -c SERVER6", "10 iters in "},
				{"pingpong ud -n 10 -s 1000 -c", "pingpong ud -n 10 -s 1000 -c SERVER4", "10 iters in "},
				{"perf write_bw -n 20 -q 2", "perf write_bw -n 20 -q 2 SERVER4", " 65536      40 "},
				{"perf read_lat -R -s 100 -n 20", "perf read_lat -R -s 100 -n 20 SERVER4", " 100     20 "},
				{"perf send_bw -R -c UD -b -s 100 -n 20", "perf send_bw -R -c UD -b -s 100 -n 20 SERVER4", " 100        20 "},
				{"perf atomic_bw -n 20", "perf atomic_bw -n 20 SERVER6", " 8          20 "},
				{"rping -s -a SERVER6 -C 3 -v -V", "rping -c -a SERVER6 -C 3 -v -V", "ping data: rdma-ping-2: CDEF"},
				{"ucmatose -c 2", "ucmatose -c 2 -s SERVER4", "return status 0\n"},
			} {
				t.Run(c.server, func(t *testing.T) {
					out := pairOn(t, p, c.server+onXDP[ends[0]], c.client+onXDP[ends[1]])
					require.Contains(t, out, c.want)
				})
			}
		})
	}
}

// pairOn runs a server at one end of a link, and a client at the other when it
// listens, and returns what the client prints.
func pairOn(t *testing.T, p *veth.Pair, server, client string) string {
	t.Helper()
	addrs := strings.NewReplacer("SERVER4", veth.Addrs4[0].String(), "SERVER6", veth.Addrs6[0].String())
	exe, err := os.Executable()
	require.NoError(t, err)
	command := func(line string) (*exec.Cmd, *bytes.Buffer) {
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), exe, words(addrs.Replace(line)+" --patience 2m")...)
		cmd.Env = append(os.Environ(), toolEnv+"=1")
		cmd.Stdout = &out
		return cmd, &out
	}
	srv, _ := command(server)
	errs := &listener{up: make(chan struct{})}
	srv.Stderr = struct{ io.Writer }{errs} // not the buffer's ReadFrom
	ended := make(chan error, 1)
	go func() { ended <- p.Do(0, srv.Run) }()
	select {
	case <-errs.up:
	case err := <-ended:
		require.NoError(t, err, errs.String())
	}
	cl, out := command(client)
	var said bytes.Buffer
	cl.Stderr = &said
	require.NoError(t, p.Do(1, cl.Run), said.String())
	require.NoError(t, <-ended, errs.String())
	return out.String()
}
