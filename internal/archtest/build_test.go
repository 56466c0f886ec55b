package archtest

import (
	"debug/elf"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var archs = flag.String("archs", runtime.GOARCH, "processors, comma separated, for which TestBinariesAreStatic builds")

// goTool runs the go command in the module's root without cgo, for linux.
func goTool(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), append([]string{"CGO_ENABLED=0", "GOOS=linux"}, env...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoErrorf(t, err, "go %s: %s", strings.Join(args, " "), stderr.String())
	return string(out)
}

// A program that imports the root package compiles nothing that serves only
// commands, metrics, eBPF or tests, whoever brings it in.
func TestUserBuildIsLean(t *testing.T) {
	for _, imp := range strings.Fields(goTool(t, nil, "list", "-deps", ".")) {
		assert.Falsef(t, isOrBelow(imp, userBuild...), "the root package pulls in %s", imp)
	}
}

// Commands load C libraries only when they are built for it.
func TestCommandsAreWithoutPurego(t *testing.T) {
	const purego = "github.com/ebitengine/purego"
	require.NotContains(t, goTool(t, nil, "list", "-deps", "./cmd/..."), purego)
	require.Contains(t, goTool(t, nil, "list", "-deps", "-tags", "ascend", "./cmd/..."), purego)
}

func TestUserBuildRuleBites(t *testing.T) {
	require.True(t, isOrBelow("github.com/spf13/cobra/doc", userBuild...))
	require.False(t, isOrBelow("golang.org/x/sys/unix", userBuild...))
}

// The CRC kernels can be left out, and are where there is no assembly for them.
func TestBuildsWithoutAssembly(t *testing.T) {
	goTool(t, []string{"GOARCH=amd64"}, "build", "-tags", "noasm", "./roce/...")
	goTool(t, []string{"GOARCH=arm64"}, "build", "-tags", "noasm", "./roce/...")
	goTool(t, []string{"GOARCH=s390x"}, "build", "./roce") // big-endian besides
}

// The programs start on a machine that has nothing but a kernel: no dynamic
// linker is asked for and no shared library needed.
func TestBinariesAreStatic(t *testing.T) {
	var commands []string
	for pkg, files := range packages(sources(t)) {
		if files[0].ast.Name.Name == "main" {
			commands = append(commands, "./"+pkg)
		}
	}
	require.NotEmpty(t, commands)
	for _, arch := range strings.Split(*archs, ",") {
		t.Run(arch, func(t *testing.T) {
			dir := t.TempDir()
			goTool(t, []string{"GOARCH=" + arch}, append([]string{"build", "-buildvcs=false", "-o", dir + "/"}, commands...)...)
			for _, pkg := range commands {
				requireStatic(t, filepath.Join(dir, filepath.Base(pkg)))
			}
		})
	}
}

func requireStatic(t *testing.T, name string) {
	t.Helper()
	f, err := elf.Open(name)
	require.NoError(t, err)
	defer f.Close()
	require.Falsef(t, slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }),
		"%s asks for a dynamic linker", name)
	libs, err := f.ImportedLibraries()
	require.NoError(t, err)
	require.Emptyf(t, libs, "%s needs shared libraries", name)
}
