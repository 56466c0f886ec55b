//go:build linux

package lab

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Where a guest finds its libraries and its loader.
const (
	guestLibs   = "lib/x86_64-linux-gnu"
	guestLoader = "lib64/ld-linux-x86-64.so.2"
)

// libraryPlaces are where unpacked packages have theirs.
var libraryPlaces = []string{"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"}

// addProgram adds an ELF file from the unpacked packages in tree, with all the
// libraries that it needs.
func (a *archive) addProgram(tree, from, to string) error {
	b, err := os.ReadFile(filepath.Join(tree, from))
	if err != nil {
		return err
	}
	return a.addELF(tree, to, b)
}

func (a *archive) addELF(tree, to string, b []byte) error {
	a.add(to, modeProgram, b)
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	libs, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	for _, lib := range libs {
		if err := a.addLibrary(tree, lib, to); err != nil {
			return err
		}
	}
	return nil
}

func (a *archive) addLibrary(tree, name, forWhom string) error {
	to := path.Join(guestLibs, name)
	if name == path.Base(guestLoader) {
		to = guestLoader
	}
	if _, there := a.files[to]; there {
		return nil
	}
	for _, place := range libraryPlaces {
		if b, err := os.ReadFile(filepath.Join(tree, place, name)); err == nil {
			return a.addELF(tree, to, b)
		}
	}
	return fmt.Errorf("%w: %s needs %s, which is in none of the packages for guests", ErrSetup, forWhom, name)
}

// moduleInfo returns the values that a kernel module gives for a key.
func moduleInfo(path, key string) ([]string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	section := f.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("%w: %s is no kernel module", ErrSetup, path)
	}
	b, err := section.Data()
	if err != nil {
		return nil, err
	}
	var values []string
	for _, pair := range strings.Split(string(b), "\x00") {
		if v, ok := strings.CutPrefix(pair, key+"="); ok && v != "" {
			values = append(values, strings.Split(v, ",")...)
		}
	}
	return values, nil
}
