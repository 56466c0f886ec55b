package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A fileRule returns what a file does wrong, a line each.
type fileRule func(*source) []string

// fileRules are the rules that look at one file.
var fileRules = map[string]fileRule{
	"imports": importFaults,
	"clock":   clockFaults,
	"length":  lengthFaults,
}

func TestFiles(t *testing.T) {
	all := sources(t)
	for name, rule := range fileRules {
		t.Run(name, func(t *testing.T) {
			for _, s := range all {
				for _, fault := range rule(s) {
					t.Error(fault)
				}
			}
		})
	}
}

func importFaults(s *source) (faults []string) {
	for _, spec := range s.ast.Imports {
		imp, _ := strconv.Unquote(spec.Path.Value)
		if wrong := judgeImport(s.pkg, imp, s.test()); wrong != "" {
			faults = append(faults, fmt.Sprintf("%s: imports %s: %s", s.at(spec), imp, wrong))
		}
	}
	return faults
}

func clockFaults(s *source) (faults []string) {
	if s.test() || isTestPackage(s.pkg) || matches(s.pkg, clocks) {
		return nil
	}
	name := importedAs(s.ast, "time")
	if name == "" {
		return nil
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if ok && x.Name == name && slices.Contains(clockFuncs, sel.Sel.Name) {
			faults = append(faults, fmt.Sprintf("%s: time.%s: time is an argument here; clocks are for %s",
				s.at(sel), sel.Sel.Name, strings.Join(clocks, " ")))
		}
		return true
	})
	return faults
}

// importedAs returns the name under which a file knows an imported package.
func importedAs(f *ast.File, imp string) string {
	for _, spec := range f.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); p == imp {
			if spec.Name != nil {
				return spec.Name.Name
			}
			return path.Base(imp)
		}
	}
	return ""
}

// Every package says in its doc.go what it owns. A command, or a package of
// one file, may say it in that file.
func TestPackagesAreDocumented(t *testing.T) {
	for pkg, files := range packages(sources(t)) {
		if wrong := docFault(pkg, files); wrong != "" {
			t.Error(wrong)
		}
	}
}

func packages(all []*source) map[string][]*source {
	m := map[string][]*source{}
	for _, s := range all {
		if !s.test() {
			m[s.pkg] = append(m[s.pkg], s)
		}
	}
	return m
}

func docFault(pkg string, files []*source) string {
	for _, s := range files {
		if s.ast.Doc == nil {
			continue
		}
		if path.Base(s.path) == "doc.go" || s.ast.Name.Name == "main" || len(files) == 1 {
			return ""
		}
	}
	return fmt.Sprintf("%s: no package comment in doc.go", pkg)
}

// delivered are the packages that the module must not lose.
var delivered = []string{
	".", "roce", "roce/rc", "roce/layers", "mr", "cq", "qp", "atomic", "device", "device/host", "device/devicetest",
	"transport", "transport/udp", "transport/sim", "transport/tap", "internal/nic", "bench",
	"cmd/hixl", "cmd/hixl-bench",
}

func TestPackagesExist(t *testing.T) {
	have := packages(sources(t))
	for _, pkg := range delivered {
		assert.Contains(t, have, pkg)
	}
}

// The rules must bite: each is shown a file that breaks it, and one that does
// not.
func TestRulesBite(t *testing.T) {
	tests := []struct {
		name, path, text, want string
	}{
		{"engine locks", "roce/rc/a.go", `import "sync"`, "holds no lock"},
		{"engine uses atomics", "roce/rc/a.go", `import "sync/atomic"`, "holds no lock"},
		{"engine dials", "roce/a.go", `import "net"`, "no I/O"},
		{"engine names an address", "roce/a.go", `import "net/netip"`, ""},
		{"engine test opens a file", "roce/a_test.go", `import "os"`, ""},
		{"upward", "mr/a.go", `import "` + module + `/qp"`, "mr may import of this module: device"},
		{"to the root", "internal/nic/a.go", `import "` + module + `"`, "internal/nic may import"},
		{"downward", "mr/a.go", `import "` + module + `/device"`, ""},
		{"a test package upward", "device/devicetest/a.go", `import "` + module + `/qp"`, ""},
		{"a test package by its name only", "internal/tools/perftest/a.go", `import "` + module + `/bench"`, "internal/tools/perftest may import"},
		{"a clock in one by its name only", "mr/mrtest/a.go", "import \"time\"\nvar t = time.Now()", "time.Now: time is an argument"},
		{"a test package in code", "internal/nic/a.go", `import "` + module + `/device/devicetest"`, "only tests"},
		{"deep in a folder", "interop/lab/a/a.go", `import "` + module + `/interop/bridge"`, ""},
		{"into another folder", "interop/lab/a/a.go", `import "` + module + `/cmd/hixl"`, "interop/lab/a may import"},
		{"one backend to another", "device/ascend/a.go", `import "` + module + `/device/host"`, "device/ascend may import"},
		{"no line in the table", "newthing/a.go", `import "` + module + `/roce"`, "no line for package newthing"},
		{"cgo", "transport/udp/a.go", `import "C"`, "cgo"},
		{"commands in a library", "a.go", `import "github.com/spf13/cobra"`, "is for: cmd/*"},
		{"commands in a command", "cmd/hixl/a.go", `import "github.com/spf13/cobra"`, ""},
		{"gopacket in the tap", "transport/tap/a.go", `import "github.com/google/gopacket/layers"`, "is for: roce/layers"},
		{"testify outside tests", "cq/a.go", `import "github.com/stretchr/testify/require"`, "is for: tests"},
		{"testify in a test package", "device/devicetest/a.go", `import "github.com/stretchr/testify/require"`, ""},
		{"processor features for the CRC kernels", "roce/internal/crc/a.go", `import "golang.org/x/sys/cpu"`, ""},
		{"system calls in an engine", "roce/a.go", `import "golang.org/x/sys/unix"`, "golang.org/x/sys is for: device/*"},
		{"a stranger", "cq/a.go", `import "example.com/queue"`, "does not list"},
		{"clock", "qp/a.go", "import \"time\"\nvar t = time.Now()", "time.Now: time is an argument"},
		{"clock by another name", "qp/a.go", "import c \"time\"\nvar t = c.After(1)", "time.After: time is an argument"},
		{"duration", "qp/a.go", "import \"time\"\nvar t = time.Second", ""},
		{"clock of the NIC", "internal/nic/a.go", "import \"time\"\nvar t = time.Now()", ""},
		{"long", "qp/a.go", strings.Repeat("\n", 600), "at most 500"},
		{"long test", "qp/a_test.go", strings.Repeat("\n", 600), "at most 500"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := parseText(tt.path, []byte("package p\n"+tt.text))
			require.NoError(t, err)
			var faults []string
			for _, rule := range fileRules {
				faults = append(faults, rule(s)...)
			}
			if tt.want == "" {
				require.Empty(t, faults)
				return
			}
			require.Len(t, faults, 1)
			require.Contains(t, faults[0], tt.want)
		})
	}
}

func TestDocRuleBites(t *testing.T) {
	bare, err := parseText("p/a.go", []byte("package p\n"))
	require.NoError(t, err)
	told, err := parseText("p/b.go", []byte("// Package p is.\npackage p\n"))
	require.NoError(t, err)
	doc, err := parseText("p/doc.go", []byte("// Package p is.\npackage p\n"))
	require.NoError(t, err)

	require.NotEmpty(t, docFault("p", []*source{bare}))
	require.NotEmpty(t, docFault("p", []*source{bare, told}), "two files, and neither is doc.go")
	require.Empty(t, docFault("p", []*source{told}))
	require.Empty(t, docFault("p", []*source{bare, doc}))
}

// The tables must not name what cannot be: no package below its own importer.
func TestGraphHasNoCycle(t *testing.T) {
	var visit func(pkg string, above []string)
	visit = func(pkg string, above []string) {
		if slices.Contains(above, pkg) {
			t.Errorf("cycle in the table: %s", strings.Join(append(above, pkg), " -> "))
			return
		}
		may, known := rule(pkg)
		if !known {
			t.Errorf("the table lets %v import %s, but has no line for it", above, pkg)
		}
		for _, p := range may {
			if !strings.HasSuffix(p, "/*") { // within one folder the compiler looks
				visit(p, append(slices.Clone(above), pkg))
			}
		}
	}
	for pkg := range graph {
		if !strings.HasSuffix(pkg, "/*") {
			visit(pkg, nil)
		}
	}
}
