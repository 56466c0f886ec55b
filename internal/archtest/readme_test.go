package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What README.md shows of the library compiles and runs: it is a part of an
// Example.
func TestReadmeShowsAnExample(t *testing.T) {
	readme := flat(t, filepath.Join(root, "README.md"))
	example := flat(t, filepath.Join(root, "example_write_test.go"))
	_, rest, found := strings.Cut(readme, "\n```go\n")
	require.True(t, found, "README.md shows no Go code")
	code, _, found := strings.Cut(rest, "\n```\n")
	require.True(t, found)
	require.Greater(t, strings.Count(code, "\n"), 15)
	require.Contains(t, example, "\n"+code+"\n")
}

var link = regexp.MustCompile(`\]\(([^)#:]+)\)`)

// README.md says how to get the module, by its name, and links to files that are
// there.
func TestReadmePointsSomewhere(t *testing.T) {
	readme := flat(t, filepath.Join(root, "README.md"))
	require.Contains(t, readme, "\ngo get "+module+"\n")
	links := link.FindAllStringSubmatch(readme, -1)
	require.NotEmpty(t, links)
	for _, m := range links {
		require.FileExists(t, filepath.Join(root, m[1]))
	}
}

// flat returns a file's lines without their indentation.
func flat(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		out.WriteString(strings.TrimLeft(line, "\t "))
	}
	return out.String()
}
