package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/tools/toolstest"
)

// said is what an end of a tool did.
type said struct {
	code     int
	out, err string
}

// listener is a server's standard error, and closes a channel when it has said
// that it listens.
type listener struct {
	bytes.Buffer
	up   chan struct{}
	once sync.Once
}

func (l *listener) Write(b []byte) (int, error) {
	n, err := l.Buffer.Write(b)
	if bytes.Contains(l.Bytes(), []byte("listening on ")) {
		l.once.Do(func() { close(l.up) })
	}
	return n, err
}

// pair runs a server, and a client when it listens.
func pair(t *testing.T, server, client []string) (s, c said) {
	t.Helper()
	var out bytes.Buffer
	errs := &listener{up: make(chan struct{})}
	ended := make(chan int, 1)
	go func() { ended <- run(server, nil, &out, errs) }()
	select {
	case <-errs.up:
	case code := <-ended:
		require.Zero(t, code, errs.String())
	}
	c.code, c.out, c.err = execute(t, nil, client...)
	s.code = <-ended
	s.out, s.err = out.String(), strings.TrimPrefix(errs.String(), errs.said())
	return s, c
}

// said is the line about listening.
func (l *listener) said() string {
	line, _, _ := strings.Cut(l.String(), "\n")
	return line + "\n"
}

func words(s string) []string { return strings.Fields(s) }

func TestTools(t *testing.T) {
	const atServer, atClient = " --local 127.94.180.2 --patience 2m", " --local 127.94.180.1 --patience 2m"
	for name, c := range map[string]struct {
		line, want string
		cm         bool
	}{
		"pingpong":  {"pingpong uc -n 10 -s 5000 -c", "10 iters in ", false},
		"perf":      {"perf write_bw -n 20 -s 4K -q 2 --report_gbits -F", " 4096       40    ", false},
		"perf lat":  {"perf send_lat -n 20 -c UD", " 2       20          ", false},
		"perf time": {"perf read_lat -D 0.2", " 2    ", false},
		"atomics":   {"perf atomic_bw -n 20 --atomic_type CMP_AND_SWAP", "Atomic CMP_AND_SWAP BW Test", false},
		"perf -R":   {"perf write_bw -R -n 20", " 65536      20 ", true},
		"rping":     {"rping -C 3 -v -V", "ping data: rdma-ping-2: CDEF", true},
		"ucmatose":  {"ucmatose -c 2", "return status 0\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := c.line+atServer, c.line+atClient
			switch {
			case name == "rping":
				server, client = server+" -s", client+" -c -a 127.94.180.2"
			case name == "ucmatose":
				client += " -s 127.94.180.2"
			case c.cm:
				client += " 127.94.180.2"
			default:
				server, client = server+" --bind 127.94.180.2", client+" 127.94.180.2"
			}
			s, cl := pair(t, words(server), words(client))
			require.Zero(t, s.code, s.err)
			require.Zero(t, cl.code, cl.err)
			require.Contains(t, cl.out, c.want)
			require.NotEmpty(t, s.out)
		})
	}
}

// Wrong data is exit status 1, and said.
func TestToolFindsWrongData(t *testing.T) {
	toolstest.Patiently(t, time.Second, func(patience time.Duration) bool {
		s, c := pair(t,
			words("pingpong rc -n 3 -c --local 127.94.181.2 --bind 127.94.181.2 --patience "+patience.String()),
			words("pingpong rc -n 3 --local 127.94.181.1 --patience "+patience.String()+" 127.94.181.2"))
		require.Equal(t, exitError, c.code)
		return s.code == exitBad && strings.HasPrefix(s.err, "hixl: message 1 (do both ends have -c?): byte 0")
	})
}

// Flags that have nothing to act on are taken, and said to have no effect.
func TestIdleFlags(t *testing.T) {
	_, _, err := execute(t, nil, words("pingpong rc -g 1 -d rxe0 -e --patience 1ms 127.94.182.9")...)
	require.Contains(t, err, "note: -g has no effect: --local chooses the address\nnote: -d has no effect: ")
	require.Contains(t, err, "note: -e has no effect: completions are always slept for\n")
	_, _, err = execute(t, nil, words("perf write_bw -x 1 -S 3 -F --patience 1ms 127.94.182.9")...)
	require.Contains(t, err, "note: -x has no effect: --local chooses the address\n")
	require.Contains(t, err, "note: -S has no effect: service levels are not carried over UDP; -T sets the TOS byte\n")
	require.NotContains(t, err, "-F has", "the flag that everybody gives needs no note")
}

func TestToolErrors(t *testing.T) {
	for line, want := range map[string]string{
		"perf":                          "perf needs a test, and got []: one of write_bw write_lat read_bw read_lat send_bw send_lat atomic_bw atomic_lat",
		"perf write_rate":               `perf needs a test, and got ["write_rate"]`,
		"perf write_bw a b":             `takes one host at most, and got ["a" "b"]`,
		"perf write_bw --frob":          "unknown flag: --frob; it knows -p/--port --local",
		"perf write_bw -A x":            "unknown shorthand flag: 'A' in -A; it knows ",
		"perf write_lat -q 2":           "unknown shorthand flag: 'q'",
		"perf write_bw -s 64k":          "-s 64k cannot work: a number of bytes from 1 to 1024M, such as 100, 64K or 1M",
		"perf write_bw -s 2048M":        "-s 2048M cannot work",
		"perf write_bw -D soon":         "-D soon cannot work: a time above 0: 10, or 500ms",
		"perf send_bw -c XRC":           "-c XRC cannot work: RC, UC or UD",
		"perf read_bw -c UD":            "-c here cannot work: READs and atomics need RC",
		"perf atomic_bw -A ADD":         "-A ADD cannot work: FETCH_AND_ADD or CMP_AND_SWAP",
		"perf write_bw --local here":    "--local here cannot work: an IP address of this host",
		"rping -s --transport rdma":     "--transport rdma cannot work: udp or xdp",
		"ucmatose --xdp-mode fast":      "--xdp-mode fast cannot work: auto, native or generic",
		"perf write_bw -p x":            `invalid argument "x" for "-p, --port" flag`,
		"pingpong":                      "pingpong needs a service, and got []: rc, uc or ud",
		"pingpong ud -m 1024":           "unknown shorthand flag: 'm'",
		"pingpong rc 127.94.182.9":      "is the server running, and is this its port (-p)",
		"rping":                         "rping needs a side: -s for the server, or -c with the server's address, -a",
		"rping -c":                      "-a left out cannot work: a client needs the server's address",
		"rping -c -s":                   "rping needs a side",
		"rping -s x":                    `takes only flags, and got ["x"]`,
		"rping -c -a 127.94.182.9 -S 3": "-S 3 cannot work: 26 to 65535",
		"ucmatose -c 0":                 "-c 0 cannot work: 1 to 4096",
		"ucmatose -m":                   "unknown shorthand flag: 'm' in -m; it knows ",
	} {
		code, _, err := execute(t, nil, words(line)...)
		require.Equal(t, exitError, code, line)
		require.True(t, strings.HasPrefix(err, "hixl: ") || strings.HasPrefix(err, "note: "), err)
		require.Contains(t, err, want, line)
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int{"": 0, "1": 1, "64K": 65536, "8M": 8 << 20, "1024M": 1 << 30} {
		n, err := parseSize(s)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	for _, s := range []string{"0", "-1", "K", "1.5K", "1G", "99999999999999999999", "1025M"} {
		_, err := parseSize(s)
		require.Error(t, err, s)
	}
}

// Help names every flag and says what it is.
func TestToolHelp(t *testing.T) {
	for _, line := range []string{"perf", "perf send_bw", "pingpong", "pingpong ud", "rping", "ucmatose"} {
		code, out, _ := execute(t, nil, append(words(line), "--help")...)
		require.Zero(t, code)
		require.Contains(t, strings.ToLower(strings.Join(words(out), " ")), "exit status", line)
	}
	_, out, _ := execute(t, nil, "perf", "send_bw", "--help")
	for _, flag := range words("-s, -n, -m, -p, -q, -b, -a, -D, -x, -F, -I, -R, -c, -S, -t, -T, -u, -r,") {
		require.Contains(t, out, "\n  "+flag+" --")
	}
}
