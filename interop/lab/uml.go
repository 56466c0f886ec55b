//go:build linux

package lab

import (
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

//go:embed uml
var umlFiles embed.FS

// umlKernel builds user-mode Linux with rdma_rxe from Debian's kernel source and
// returns its folder and release.
func (s *store) umlKernel(ctx context.Context) (dir, release string, err error) {
	config, err := umlFiles.ReadFile("uml/config")
	if err != nil {
		return "", "", err
	}
	patch, err := umlFiles.ReadFile("uml/xstate.patch")
	if err != nil {
		return "", "", err
	}
	key := fmt.Sprintf("%x", sha256.Sum256(append(append([]byte(nil), config...), patch...)))
	dir, err = s.once("uml", key, func(dir string) error {
		if err := s.install(ctx, kernelBuilder); err != nil {
			return err
		}
		deb, err := s.download(ctx, sourcePackage)
		if err != nil {
			return err
		}
		_, version := debVersion(deb[0])
		s.say("building user-mode Linux %s: several minutes, once", version)
		b := umlBuild{store: s, out: dir, src: s.path("uml-source")}
		return b.make(ctx, deb[0], config, patch)
	})
	if err != nil {
		return "", "", err
	}
	b, err := os.ReadFile(filepath.Join(dir, "release"))
	return dir, strings.TrimSpace(string(b)), err
}

type umlBuild struct {
	*store
	out, src string
}

func (b *umlBuild) make(ctx context.Context, deb string, config, patch []byte) error {
	if err := os.RemoveAll(b.src); err != nil {
		return err
	}
	if err := os.MkdirAll(b.src, 0o755); err != nil {
		return err
	}
	files := map[string][]byte{"config": config, "xstate.patch": patch}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(b.out, name), data, 0o644); err != nil {
			return err
		}
	}
	given := func(name string) string { return filepath.Join(b.out, name) }
	const unpackSource = `set -eo pipefail; dpkg-deb --fsys-tarfile "$1" | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' | tar -xJ --strip-components=1`
	jobs := strconv.Itoa(runtime.NumCPU())
	for _, step := range [][]string{
		{"bash", "-c", unpackSource, "unpack", deb},
		{"patch", "-s", "-p1", "-i", given("xstate.patch")},
		{"make", "-s", "ARCH=um", "KCONFIG_ALLCONFIG=" + given("config"), "allnoconfig"},
	} {
		if _, err := run(ctx, b.src, step[0], step[1:]...); err != nil {
			return err
		}
	}
	if err := b.checkConfig(string(config)); err != nil {
		return err
	}
	for _, step := range [][]string{
		{"nice", "-n", "15", "make", "-s", "-j" + jobs, "ARCH=um", "linux"},
		{"strip", "-o", given("linux"), "linux"},
	} {
		if _, err := run(ctx, b.src, step[0], step[1:]...); err != nil {
			return err
		}
	}
	release, err := run(ctx, b.src, "make", "-s", "ARCH=um", "kernelrelease")
	if err != nil {
		return err
	}
	if err := os.WriteFile(given("release"), []byte(release), 0o644); err != nil {
		return err
	}
	return os.RemoveAll(b.src)
}

// checkConfig makes sure that no option was dropped for a dependency.
func (b *umlBuild) checkConfig(wanted string) error {
	got, err := os.ReadFile(filepath.Join(b.src, ".config"))
	if err != nil {
		return err
	}
	for option := range strings.Lines(wanted) {
		option = strings.TrimSpace(option)
		if strings.HasPrefix(option, "CONFIG_") && !strings.Contains("\n"+string(got), "\n"+option+"\n") {
			return fmt.Errorf("%w: this kernel source does not take %s", ErrSetup, option)
		}
	}
	return nil
}
