package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// names holds what a package declares: types, functions, constants, "Type.Method",
// "Type.Field", and these two without their type.
type names map[string]bool

func (n names) read(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			n.declare(d)
		}
	}
}

func (n names) declare(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		n[d.Name.Name] = true
		if d.Recv != nil {
			on := d.Recv.List[0].Type
			if p, ok := on.(*ast.StarExpr); ok {
				on = p.X
			}
			if id, ok := on.(*ast.Ident); ok {
				n[id.Name+"."+d.Name.Name] = true
			}
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				n[s.Name.Name] = true
				if x, ok := s.Type.(*ast.StructType); ok {
					for _, f := range x.Fields.List {
						for _, id := range f.Names {
							n[id.Name], n[s.Name.Name+"."+id.Name] = true, true
						}
					}
				}
			case *ast.ValueSpec:
				for _, id := range s.Names {
					n[id.Name] = true
				}
			}
		}
	}
}

var (
	quoted  = regexp.MustCompile("`([^`]+)`")
	command = regexp.MustCompile("`[a-z-]+ [^`]+`|`[a-z]+`") // a tool's call, a package
)

// Each row of the programming model has an API that exists, a test and an example.
func TestModelTable(t *testing.T) {
	known := make(names)
	for _, dir := range []string{"../..", "../../dsync", "../../engine", "../../internal/chaostest"} {
		known.read(t, dir)
	}
	text, err := os.ReadFile("../../docs/model.md")
	require.NoError(t, err)
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || strings.Contains(line, "---") || strings.HasPrefix(line, "| Area") {
			continue
		}
		rows++
		for i, want := range []string{"", "", "Test", "Example"} {
			if i == 0 {
				continue
			}
			found := quoted.FindAllStringSubmatch(command.ReplaceAllString(cells[i], ""), -1)
			require.NotEmpty(t, found, "column %d of %s", i, line)
			for _, m := range found {
				require.True(t, strings.HasPrefix(m[1], want), m[1])
				require.True(t, known[m[1]], "%s, which %s names, does not exist", m[1], strings.TrimSpace(cells[0]))
			}
		}
	}
	require.Greater(t, rows, 15)
	for _, area := range []string{
		"Memory region", "Context", "Read", "Write", "Coalescing", "Pipelining", "Atomics", "Synchronisation", "Consistency", "Recovery", "Scale", "Streams and events", "Profiling",
	} {
		require.Contains(t, string(text), "\n| "+area)
	}
}

// What the guide shows is, line by line and in the same order, in an example that runs.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide.md")
	require.NoError(t, err)
	program, err := os.ReadFile("../../example_guide_test.go")
	require.NoError(t, err)
	rest := strings.Split(string(program), "\n")
	lines := 0
	for i, block := range strings.Split(string(guide), "```") {
		if i%2 == 0 {
			continue
		}
		require.True(t, strings.HasPrefix(block, "go\n"), block)
		for line := range strings.Lines(block[3:]) {
			line, _, _ = strings.Cut(line, " // ")
			if line = strings.TrimSpace(strings.ReplaceAll(line, "127.0.0.", "127.88"+".51.")); line == "" {
				continue
			}
			lines++
			at := 0
			for at < len(rest) && strings.TrimSpace(rest[at]) != line {
				at++
			}
			require.Less(t, at, len(rest), "the example has no line %q behind those before it", line)
			rest = rest[at+1:]
		}
	}
	require.Greater(t, lines, 15)
}
