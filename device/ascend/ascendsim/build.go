package ascendsim

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed src/*.c src/*.h src/hal/*.c
var sources embed.FS

// Names of the libraries.
const (
	ACL = "libascendcl.so"
	HAL = "libascend_hal.so"
)

// Build compiles both libraries into dir, which exists. The symbols named in
// without are left out, as an older release lacks them.
func Build(dir string, without ...string) error {
	src := filepath.Join(dir, "src")
	if err := unpack(src); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(src) }() // it is no matter when it stays
	hide := filepath.Join(src, "hide.map")
	if err := os.WriteFile(hide, versionScript(without), 0o600); err != nil {
		return err
	}
	common := []string{"-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-Wall", "-Wextra", "-Werror", "-Wl,--version-script=" + hide}
	for lib, pattern := range map[string]string{ACL: "src/*.c", HAL: "src/hal/*.c"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		args := append(append([]string{}, common...), "-o", filepath.Join(dir, lib))
		if err := gcc(append(append(args, files...), "-ldl")); err != nil {
			return err
		}
	}
	return nil
}

func gcc(args []string) error {
	out, err := exec.Command("gcc", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ascendsim: gcc %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// versionScript hides symbols from dlsym.
func versionScript(without []string) []byte {
	var b strings.Builder
	b.WriteString("{ global: *;")
	if len(without) > 0 {
		b.WriteString(" local: " + strings.Join(without, "; ") + ";")
	}
	b.WriteString(" };\n")
	return []byte(b.String())
}

func unpack(dir string) error {
	return fs.WalkDir(sources, "src", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(name, "src"))
		if e.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		text, err := sources.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o600)
	})
}
