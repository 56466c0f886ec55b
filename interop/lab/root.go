//go:build linux

package lab

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

//go:embed guest
var guestFiles embed.FS

// guestPrograms are what guests get of the packages, by pattern.
var guestPrograms = []string{"usr/bin/ib_*", "usr/bin/ibv_*", "usr/bin/rping", "usr/bin/ucmatose", "usr/bin/udaddy", "usr/bin/rdma"}

// guestTree unpacks the guests' packages.
func (s *store) guestTree(ctx context.Context) (tree string, files []string, err error) {
	files, err = s.download(ctx, guestPackages...)
	if err != nil {
		return "", nil, err
	}
	tree, err = s.once("tree", strings.Join(files, "\n"), func(dir string) error {
		s.say("unpacking the guests' packages")
		return unpack(ctx, dir, files...)
	})
	return tree, files, err
}

// guestRoot makes the file system of guests, apart from kernel modules.
func (s *store) guestRoot(ctx context.Context, tree string) (*archive, error) {
	a := newArchive()
	for _, dir := range []string{"proc", "sys", "dev", "tmp", "run", "root", "etc", "modules", "bin", "usr/bin"} {
		a.folder(dir)
	}
	initScript, err := guestFiles.ReadFile("guest/init")
	if err != nil {
		return nil, err
	}
	a.add("init", modeProgram, initScript)
	a.add("etc/passwd", modeFile, []byte("root:x:0:0::/root:/bin/sh\n"))
	a.add("etc/hosts", modeFile, []byte("127.0.0.1 localhost\n::1 localhost\n"))
	a.add("etc/libibverbs.d/rxe.driver", modeFile, []byte("driver rxe\n"))
	a.add("modules/order", modeFile, nil)
	if err := a.addProgram(tree, "bin/busybox", "bin/busybox"); err != nil {
		return nil, err
	}
	// What is opened by name at run time: the loader, what pthread_exit wants, the
	// verbs driver.
	for _, lib := range []string{path.Base(guestLoader), "libgcc_s.so.1"} {
		if err := a.addLibrary(tree, lib, "every program"); err != nil {
			return nil, err
		}
	}
	if err := a.addProgram(tree, "bin/ip", "usr/bin/ip"); err != nil {
		return nil, err
	}
	patterns := append([]string{"usr/lib/x86_64-linux-gnu/libibverbs/librxe-*.so"}, guestPrograms...)
	for _, pattern := range patterns {
		found, _ := filepath.Glob(filepath.Join(tree, pattern)) // the pattern is well formed
		if len(found) == 0 {
			return nil, fmt.Errorf("%w: no %s in the guests' packages", ErrSetup, pattern)
		}
		for _, f := range found {
			to := strings.TrimPrefix(f, tree+"/")
			if err := a.addProgram(tree, to, to); err != nil {
				return nil, err
			}
		}
	}
	return a, s.addTools(ctx, a, tree)
}

// guestTools are our own programs for the guests, each of one file.
var guestTools = []string{"verbs", "benchpeer"}

// addTools builds our own programs for the guests.
func (s *store) addTools(ctx context.Context, a *archive, tree string) error {
	dir := s.path("tools")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range guestTools {
		if err := compile(ctx, tree, dir, name); err != nil {
			return err
		}
	}
	agent := filepath.Join(dir, "agent")
	if _, err := run(ctx, s.root, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", agent, "./interop/cmd/guestagent"); err != nil {
		return err
	}
	for _, name := range append([]string{"agent"}, guestTools...) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := a.addELF(tree, "usr/bin/"+name, b); err != nil {
			return err
		}
	}
	return nil
}

// compile makes a program against the guests' libraries.
func compile(ctx context.Context, tree, dir, name string) error {
	source, err := guestFiles.ReadFile("guest/" + name + ".c")
	if err != nil {
		return err
	}
	program := filepath.Join(dir, name)
	if err := os.WriteFile(program+".c", source, 0o644); err != nil {
		return err
	}
	libs := []string{filepath.Join(tree, libraryPlaces[0]), filepath.Join(tree, libraryPlaces[1])}
	_, err = run(ctx, "", "gcc", "-O2", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror",
		"-I"+filepath.Join(tree, "usr/include"), "-o", program, program+".c",
		"-L"+libs[1], "-Wl,-rpath-link,"+strings.Join(libs, ":"), "-libverbs")
	return err
}
