package bench

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
	"time"
)

// libfabric is its ping-pong of reliable datagrams; Debian has no program of its
// one-sided operations.
var libfabric = program{
	file: "fi_pingpong", pkg: "libfabric-bin", about: "fi_pingpong's messages over libfabric's TCP provider (tcp;ofi_rxm), one in flight, from and to one buffer",
	server: func(size int, n uint64) []string { return append(libfabricArgs(size, n), "-B", programPort) },
	client: func(size int, n uint64) []string {
		return append(libfabricArgs(size, n), "-P", programPort, "127.0.0.1")
	},
	alone: true, parse: parseLibfabric,
}

// libfabricArgs are those that both sides must be given alike.
func libfabricArgs(size int, n uint64) []string {
	return []string{"-p", "tcp;ofi_rxm", "-e", "rdm", "-S", strconv.Itoa(size), "-I", strconv.FormatUint(n, 10)}
}

// parseLibfabric reads fi_pingpong's table, whose counts are shortened and whose
// usec/xfer is of one message one way:
//
//	bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
//	64k     1k      =1k      125m        2.81s     46.63    1405.35       0.00
func parseLibfabric(out []byte, _ int, n uint64) (figures, error) {
	bad := func(why string) (figures, error) { return figures{}, &outputError{out, why} }
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "bytes") || !lines.Scan() {
			continue
		}
		f := strings.Fields(lines.Text())
		if len(f) < 8 {
			return bad("no figures")
		}
		us, err := strconv.ParseFloat(f[6], 64)
		if err != nil || us <= 0 {
			return bad("no time a transfer")
		}
		return figures{
			messages: 2 * n, elapsed: seconds(2 * float64(n) * us / 1e6), oneWay: time.Duration(us * float64(time.Microsecond)),
		}, nil
	}
	return bad("no table")
}
