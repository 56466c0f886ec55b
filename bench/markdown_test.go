package bench

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMarkdownOfAReport(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, goldenReport().WriteMarkdown(&b))
	require.Contains(t, b.String(), Machine())
	require.Contains(t, b.String(), "\n| write | 64 | ")
	require.Contains(t, b.String(), "\n| tcp | 1MiB | ")
	columns := bytes.Count(bytes.SplitN(b.Bytes(), []byte("\n| write"), 2)[0], []byte("---|"))
	for _, line := range bytes.Split(b.Bytes(), []byte("\n")) {
		if bytes.HasPrefix(line, []byte("| ")) {
			require.Equal(t, columns+1, bytes.Count(line, []byte("|")), "%s", line)
		}
	}
}

func TestUpdateSection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.md")
	put := func(s string) { require.NoError(t, os.WriteFile(file, []byte(s), 0o600)) }
	get := func() string {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(b)
	}
	say := func(s string) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, s)
			return err
		}
	}
	const doc = "before\n<!-- a: begin -->\nold\n<!-- a: end -->\nbetween\n<!-- b: begin -->\n<!-- b: end -->\n"
	put(doc)
	require.NoError(t, UpdateSection(file, "a", say("new\nlines\n")))
	require.NoError(t, UpdateSection(file, "b", say("x\n")))
	const want = "before\n<!-- a: begin -->\nnew\nlines\n<!-- a: end -->\nbetween\n<!-- b: begin -->\nx\n<!-- b: end -->\n"
	require.Equal(t, want, get())

	require.ErrorContains(t, UpdateSection(file, "c", say("")), `no section "c"`)
	why := errors.New("enough")
	require.ErrorIs(t, UpdateSection(file, "a", func(io.Writer) error { return why }), why)
	require.Equal(t, want, get(), "a failure changes nothing")
	require.ErrorIs(t, UpdateSection(file+"x", "a", say("")), os.ErrNotExist)
}

func TestMachineTellsGo(t *testing.T) { require.Contains(t, Machine(), "go1.") }
