package bench

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"time"
)

// ucxPut and ucxGet are UCX's one-sided operations over TCP.
var (
	ucxPut = ucxProgram("ucp_put_bw", "puts of ucx_perftest over TCP (UCX_TLS=tcp,self), a gibibyte a run or 20,000 messages, the wait for the last of them in it; its processes poll, each message goes from and to the same buffer", ucxArgs("ucp_put_lat"))
	ucxGet = ucxProgram("ucp_get", "gets of ucx_perftest over TCP, one in flight", nil)
)

// ucxPuts is how many puts a run has at least. After the last one of a mebibyte
// ucx_perftest may wait for a second and more, however many there were, so that a short
// run would be that wait and nothing else.
func ucxPuts(size int) uint64 { return uint64(min(1<<30/size, 20_000)) }

func ucxProgram(test, about string, latency func(int, uint64) []string) program {
	p := program{
		file: "ucx_perftest", pkg: "ucx-utils", about: about,
		env:    []string{"UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo", "UCX_LOG_LEVEL=error"},
		server: func(int, uint64) []string { return []string{"-p", programPort} },
		client: ucxArgs(test), latency: latency, parse: parseUCX,
	}
	if latency != nil {
		p.least = ucxPuts
	} else { // the one test tells both, of the whole operation
		p.alone = true
		p.parse = func(out []byte, size int, n uint64) (figures, error) {
			f, err := parseUCX(out, size, n)
			f.oneWay /= 2
			return f, err
		}
	}
	return p
}

// ucxWarmup is how many messages go before those that count.
const ucxWarmup = 10

func ucxArgs(test string) func(size int, n uint64) []string {
	return func(size int, n uint64) []string {
		return []string{
			"127.0.0.1", "-p", programPort, "-t", test, "-s", strconv.Itoa(size), "-n", strconv.FormatUint(n, 10),
			"-w", strconv.Itoa(ucxWarmup), "-f", "-v",
		}
	}
}

// The columns of ucx_perftest's CSV output.
const (
	ucxIterations = "iterations"
	ucxLatency    = "overall_lat" // microseconds; one way in latency tests
	ucxRate       = "overall_mr"  // messages a second
)

// parseUCX reads the final figures of ucx_perftest -f -v: a heading, and the
// line that follows it.
func parseUCX(out []byte, _ int, _ uint64) (figures, error) {
	bad := func(why string) (figures, error) { return figures{}, &outputError{out, why} }
	at := bytes.Index(out, []byte(ucxIterations+","))
	if at < 0 {
		return bad("no heading")
	}
	r := csv.NewReader(bytes.NewReader(out[at:]))
	r.TrimLeadingSpace = true
	rows, err := r.ReadAll()
	if err != nil || len(rows) < 2 {
		return bad("no figures")
	}
	v := map[string]float64{}
	for i, name := range rows[0] {
		if v[name], err = strconv.ParseFloat(rows[len(rows)-1][i], 64); err != nil || v[name] < 0 {
			return bad("no number as " + name)
		}
	}
	n, rate := v[ucxIterations], v[ucxRate]
	if n < 1 || rate <= 0 {
		return bad("nothing measured")
	}
	return figures{
		messages: uint64(n), elapsed: seconds(n / rate), oneWay: time.Duration(v[ucxLatency] * float64(time.Microsecond)),
	}, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
