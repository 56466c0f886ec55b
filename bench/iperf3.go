package bench

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// iperf3 streams from one fixed buffer of the message's size.
var iperf3 = program{
	file: "iperf3", pkg: "iperf3", about: "iperf3's TCP stream, one write a message from a fixed buffer, read and dropped; it tells no latency",
	server: func(int, uint64) []string { return []string{"-s", "-1", "-B", "127.0.0.1", "-p", programPort} },
	client: func(size int, n uint64) []string {
		// It refuses blocks above a mebibyte.
		bytes := n * uint64(size)
		return []string{
			"-c", "127.0.0.1", "-p", programPort, "-l", strconv.Itoa(min(size, 1<<20)), "-n", strconv.FormatUint(bytes, 10),
			"-C", wantedCongestion, "-J",
		}
	},
	parse: parseIperf3,
}

// parseIperf3 reads what iperf3 -J printed.
func parseIperf3(out []byte, size int, _ uint64) (figures, error) {
	bad := func(why string) (figures, error) { return figures{}, &outputError{out, why} }
	var r struct {
		Error string `json:"error"`
		End   struct {
			Received struct {
				Seconds float64 `json:"seconds"`
				Bytes   float64 `json:"bytes"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&r); err != nil {
		return bad("no JSON")
	}
	if r.Error != "" {
		return bad(r.Error)
	}
	got := r.End.Received
	if got.Seconds <= 0 || got.Bytes < float64(size) {
		return bad("nothing measured")
	}
	return figures{messages: uint64(got.Bytes) / uint64(size), elapsed: seconds(got.Seconds)}, nil
}
