//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// Packages of Debian that are installed here.
var (
	hostPackages  = []string{"gcc", "libc6-dev", "iproute2", "xz-utils", "tshark"}
	emulator      = []string{"qemu-system-x86", "binutils"}
	kernelBuilder = []string{"make", "flex", "bison", "bc", "libelf-dev", "patch"}
)

// guestPackages are unpacked for the guests only; installing them here would
// bring drivers and services along.
var guestPackages = []string{
	"busybox-static", "iproute2",
	"perftest", "ibverbs-utils", "rdmacm-utils", "ibverbs-providers",
	"libibverbs1", "librdmacm1", "libibumad3", "libibverbs-dev",
	"libc6", "libgcc-s1", "libnl-3-200", "libnl-route-3-200", "libpci3", "libudev1",
	"libmnl0", "libelf1", "libbpf1", "libbsd0", "libmd0", "libcap2", "zlib1g",
}

// Where packages of a kernel come from.
const (
	kernelPackage = "linux-image-amd64"
	sourcePackage = "linux-source-6.1"
)

// lockWait lets another user of the package system finish.
const lockWait = "DPkg::Lock::Timeout=300"

// install installs what is missing of the packages.
func (s *store) install(ctx context.Context, packages []string) error {
	var missing []string
	for _, p := range packages {
		if out, err := run(ctx, "", "dpkg-query", "-W", "-f=${db:Status-Status}", p); err != nil || out != "installed" {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	s.say("installing %s", strings.Join(missing, " "))
	if err := s.update(ctx); err != nil {
		return err
	}
	args := append([]string{"-qq", "-y", "-o", lockWait, "install", "--no-install-recommends"}, missing...)
	_, err := run(ctx, "", "apt-get", args...)
	return err
}

func (s *store) update(ctx context.Context) error {
	_, err := run(ctx, "", "apt-get", "-qq", "-o", lockWait, "update")
	return err
}

// download fetches what is missing of the packages as files and returns their
// paths, sorted.
func (s *store) download(ctx context.Context, packages ...string) ([]string, error) {
	dir := s.path("deb")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var missing []string
	for _, p := range packages {
		if len(debs(dir, p)) == 0 {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		s.say("downloading %d packages", len(missing))
		args := append([]string{"-qq", "-o", "APT::Sandbox::User=root", "download"}, missing...)
		if _, err := run(ctx, dir, "apt-get", args...); err != nil { // an old list may name files that are gone
			if err := s.update(ctx); err != nil {
				return nil, err
			}
			if _, err := run(ctx, dir, "apt-get", args...); err != nil {
				return nil, err
			}
		}
	}
	var files []string
	for _, p := range packages {
		got := debs(dir, p)
		if len(got) == 0 {
			return nil, fmt.Errorf("%w: no file for package %s in %s", ErrSetup, p, dir)
		}
		files = append(files, got[len(got)-1])
	}
	sort.Strings(files)
	return files, nil
}

func debs(dir, name string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, name+"_*.deb")) // the pattern is well formed
	return files
}

// debVersion is the version in the name of a package's file.
func debVersion(path string) (name, version string) {
	parts := strings.SplitN(filepath.Base(path), "_", 3)
	return parts[0], strings.ReplaceAll(parts[1], "%3a", ":")
}

// unpack extracts packages into dir.
func unpack(ctx context.Context, dir string, files ...string) error {
	for _, f := range files {
		if _, err := run(ctx, "", "dpkg-deb", "-x", f, dir); err != nil {
			return err
		}
	}
	return nil
}
