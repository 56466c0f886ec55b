package rc_test

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/dump"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
)

const captures = "../../testdata/pcaps/"

// start is the virtual time of a capture's first packet.
const start = mono.Time(time.Second)

// packet is one recorded packet.
type packet struct {
	n    int // number in the capture, from 1
	pos  int // index in the packets of its connection
	at   mono.Time
	from side
	lost bool // recorded between the ends, but it never arrived
	p    roce.Packet
}

// side is an end of a connection.
type side int

const (
	active side = iota
	passive
)

func (s side) String() string { return [...]string{"active", "passive"}[s] }

func (s side) other() side { return 1 - s }

// wire is everything of a packet that is compared: headers without the
// migration bit, which rxe never sets (Q2), and payload. IP and UDP headers, and
// with them identification and source port, are not in a packet (§10).
func wire(p *roce.Packet) string {
	q := *p
	q.Mig = false
	return string(append(q.AppendHeader(nil), q.Payload...))
}

// readCapture returns the RC packets of a capture.
func readCapture(t testing.TB, file string) []packet {
	t.Helper()
	in, err := os.Open(captures + file + ".pcap")
	require.NoError(t, err)
	defer in.Close()
	r, err := dump.NewReader(in)
	require.NoError(t, err)
	var list []packet
	var first time.Time
	for n := 1; ; n++ {
		var d dump.Packet
		err := r.Next(&d)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err)
		if n == 1 {
			first = d.Time
		}
		var f roce.Frame
		if roce.DecodeFrame(d.Link, append([]byte(nil), d.Data...), &f) != nil {
			continue // the tools' exchange over TCP
		}
		k := packet{n: n, at: start.Add(d.Time.Sub(first))}
		require.NoError(t, k.p.Decode(f.Payload))
		if k.p.Opcode.Transport() == roce.RC {
			list = append(list, k)
		}
	}
}
