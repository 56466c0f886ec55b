package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is one Go file of the module, whatever its build constraints.
type source struct {
	path  string // below the module's root, with slashes
	pkg   string // its package's path below the module's root, "." for the root
	lines int
	ast   *ast.File
	fset  *token.FileSet
}

func (s *source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

// at names a place in the file as an editor understands it.
func (s *source) at(n ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(n.Pos()).Line)
}

// root is the module's root as seen from this package, where go test runs.
const root = "../.."

// sources parses every Go file of the module; other modules in its folders,
// hidden folders and testdata are left out.
func sources(t *testing.T) []*source {
	t.Helper()
	var all []*source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && skipDir(name, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		s, err := parse(name)
		all = append(all, s)
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

func skipDir(name, base string) bool {
	if base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(name, "go.mod"))
	return err == nil
}

func parse(name string) (*source, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return nil, err
	}
	rel = filepath.ToSlash(rel)
	return parseText(rel, text)
}

func parseText(rel string, text []byte) (*source, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	return &source{
		path: rel, pkg: path.Dir(rel), lines: bytes.Count(text, []byte{'\n'}), ast: f, fset: fset,
	}, err
}
