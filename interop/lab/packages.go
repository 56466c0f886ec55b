//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
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

// aptOptions let another user of the package system finish and a server recover.
var aptOptions = []string{"-qq", "-y", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"}

// patience is how long to wait before each further try to reach the archive.
var patience = []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second, 90 * time.Second}

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
	return s.insist(ctx, func() error {
		return updated(ctx, "", append([]string{"install", "--no-install-recommends"}, missing...)...)
	})
}

// updated runs apt-get with the newest lists that there are. What updating them
// complains of may be another archive than the one that matters.
func updated(ctx context.Context, dir string, args ...string) error {
	lists := apt(ctx, "", "update")
	if err := apt(ctx, dir, args...); err != nil {
		return errors.Join(err, lists)
	}
	return nil
}

func apt(ctx context.Context, dir string, args ...string) error {
	_, err := run(ctx, dir, "apt-get", append(aptOptions[:len(aptOptions):len(aptOptions)], args...)...)
	return err
}

// insist tries again what may fail for a moment.
func (s *store) insist(ctx context.Context, try func() error) error {
	err := try()
	for _, wait := range patience {
		if err == nil {
			return nil
		}
		s.say("%v: again in %v", err, wait)
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(wait):
		}
		err = try()
	}
	if err != nil {
		err = fmt.Errorf("%w: Debian's archive does not give what is needed, %d times: %w", ErrSetup, len(patience)+1, err)
	}
	return err
}

// download fetches what is missing of the packages as files and returns their
// paths, sorted.
func (s *store) download(ctx context.Context, packages ...string) ([]string, error) {
	dir := s.path("deb")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := s.fetch(ctx, dir, packages); err != nil {
		return nil, err
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

// fetch downloads what is not in dir.
func (s *store) fetch(ctx context.Context, dir string, packages []string) error {
	var missing []string
	for _, p := range packages {
		if len(debs(dir, p)) == 0 {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	s.say("downloading %d packages", len(missing))
	args := append([]string{"-o", "APT::Sandbox::User=root", "download"}, missing...)
	if apt(ctx, dir, args...) == nil {
		return nil
	}
	// An old list may name files that are gone.
	return s.insist(ctx, func() error { return updated(ctx, dir, args...) })
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
