package archtest

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rows and tests of docs/bugs.md.
var (
	bugRow  = regexp.MustCompile(`(?m)^\| ([A-Z][0-9]+) \| .* \| (.*) \|$`)
	bugTest = regexp.MustCompile("`([a-z0-9/.]*)\\.((?:Test|Fuzz)[A-Za-z0-9_]+)`")
)

// lastRxeRow is the last of the rows of which none may be missing.
const lastRxeRow = 33

// docs/bugs.md names tests that exist: a row whose test is renamed or dropped is
// noticed here.
func TestBugsNameTheirTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "bugs.md"))
	require.NoError(t, err)
	for _, fault := range bugFaults(string(text), testFuncs(sources(t))) {
		t.Error(fault)
	}
}

// testFuncs are the tests of all packages, as docs/bugs.md names them.
func testFuncs(all []*source) map[string]bool {
	names := map[string]bool{}
	for _, s := range all {
		if !s.test() {
			continue
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				names[s.pkg+"."+f.Name.Name] = true
			}
		}
	}
	return names
}

// bugFaults returns what is wrong with the tables of text, a line each.
func bugFaults(text string, exist map[string]bool) (faults []string) {
	seen := map[string]bool{}
	for _, row := range bugRow.FindAllStringSubmatch(text, -1) {
		name := row[1]
		if seen[name] {
			faults = append(faults, name+": twice")
		}
		seen[name] = true
		tests := bugTest.FindAllStringSubmatch(row[2], -1)
		if len(tests) == 0 {
			faults = append(faults, name+": names no test")
		}
		for _, m := range tests {
			pkg := m[1]
			if pkg == "" {
				pkg = "."
			}
			if !exist[pkg+"."+m[2]] {
				faults = append(faults, fmt.Sprintf("%s: no test %s in %s", name, m[2], pkg))
			}
		}
	}
	if n := strings.Count(text, "\n| ") - strings.Count(text, "\n| Row |"); n != len(bugRow.FindAllString(text, -1)) {
		faults = append(faults, "a row is not of the form | A1 | what is right | `folder.TestName` |")
	}
	for i := range lastRxeRow {
		if name := fmt.Sprintf("R%d", i+1); !seen[name] {
			faults = append(faults, name+": missing")
		}
	}
	return faults
}

func TestBugRuleBites(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("| Row | What is right | Tests |\n|---|---|---|\n")
	for i := range lastRxeRow {
		fmt.Fprintf(&rows, "| R%d | x | `qp.TestA` `.FuzzB` |\n", i+1)
	}
	exist := map[string]bool{"qp.TestA": true, "..FuzzB": true}
	good := "\n" + rows.String()
	require.Empty(t, bugFaults(good, exist))
	for want, bad := range map[string]string{
		"R7: missing":                   strings.Replace(good, "R7 ", "R8 ", 1),
		"R8: twice":                     strings.Replace(good, "R7 ", "R8 ", 1),
		"R3: no test TestC in qp":       strings.Replace(good, "| R3 | x | `qp.TestA`", "| R3 | x | `qp.TestC`", 1),
		"R3: no test TestA in .":        strings.Replace(good, "| R3 | x | `qp.TestA`", "| R3 | x | `.TestA`", 1),
		"R3: names no test":             strings.Replace(good, "| R3 | x | `qp.TestA` `.FuzzB`", "| R3 | x | none", 1),
		"a row is not of the form | A1": good + "| C7 | without a column |\n",
	} {
		require.Contains(t, strings.Join(bugFaults(bad, exist), "\n"), want)
	}
}
