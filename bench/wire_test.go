package bench

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWireRoundTrip(t *testing.T) {
	var b bytes.Buffer
	w := newWire(&b, &b)
	want := request{Do: doPrepare, Prepare: &preparation{Key: 1<<63 + 1, Fill: true}, Spans: []span{{1, 2}}}
	require.NoError(t, w.send(&want))
	require.NoError(t, w.send(&request{Do: doUsage, Cell: -1}))
	var got request
	require.NoError(t, w.receive(&got))
	require.Equal(t, want, got, "64-bit numbers survive")
	var next request
	require.NoError(t, w.receive(&next))
	require.Equal(t, -1, next.Cell)
	require.ErrorIs(t, w.receive(&got), io.EOF)
}

func TestWireRefusesHostileInput(t *testing.T) {
	for name, in := range map[string]string{
		"no JSON":         "hello\n",
		"unknown field":   `{"do":"hello","surprise":1}` + "\n",
		"wrong type":      `{"do":"prepare","prepare":{"counters":"x"}}` + "\n",
		"cut off":         `{"do":"hel`,
		"without an end":  strings.Repeat("a", maxLine+10),
		"long whole line": `{"do":"` + strings.Repeat("a", maxLine) + `"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			var req request
			require.Error(t, newWire(strings.NewReader(in), io.Discard).receive(&req))
		})
	}
}

// endless gives the same byte for ever and counts them.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '['
	}
	e.n += len(p)
	return len(p), nil
}

func TestWireStopsReadingALineWithoutEnd(t *testing.T) {
	in := &endless{}
	var req request
	require.ErrorIs(t, newWire(in, io.Discard).receive(&req), errLineTooLong)
	require.LessOrEqual(t, in.n, maxLine+256<<10)
}

func FuzzWire(f *testing.F) {
	f.Add([]byte(`{"do":"hello","hello":{"version":2,"local":"127.0.0.1","region":64}}` + "\n"))
	f.Add([]byte(`{"spans":[{"from":1,"to":18446744073709551615}]}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newWire(bytes.NewReader(b), io.Discard)
		for {
			var req request
			if w.receive(&req) != nil {
				return
			}
			_ = w.send(&req)
		}
	})
}

// The peer on libibverbs of the interoperability lab speaks this version too.
func TestGuestsPeerHasThisVersion(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "interop", "lab", "guest", "benchpeer.c"))
	require.NoError(t, err)
	require.Contains(t, string(source), fmt.Sprintf("#define VERSION %d\n", protocolVersion),
		"see whether benchpeer.c, which knows the data cells' requests only, has to learn the change; then `go run ./interop/cmd/interop -run hixl-bench`")
}
