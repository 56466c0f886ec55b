//go:build linux

package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const modulePath = "github.com/gohixl/hixl"

// ErrSetup is what failures to make the lab's pieces unwrap to.
var ErrSetup = errors.New("lab: setup")

// moduleRoot is the folder of the go.mod above the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if isModule(filepath.Join(dir, "go.mod")) {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("%w: run it somewhere in the module %s", ErrSetup, modulePath)
		}
		dir = up
	}
}

func isModule(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	line, _ := bufio.NewReader(f).ReadString('\n')
	return strings.TrimSpace(line) == "module "+modulePath
}

// store is the folder of what is made once. Deleting it is always safe.
type store struct {
	root string // of the module
	dir  string
	log  io.Writer
}

func openStore(log io.Writer) (*store, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	s := &store{root: root, dir: filepath.Join(root, ".cache", "interop"), log: log}
	return s, os.MkdirAll(s.dir, 0o755)
}

func (s *store) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

func (s *store) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.log, "lab: "+format+"\n", args...) // it is only said
}

// once makes a folder by fill unless it was completed before under the same key.
func (s *store) once(name, key string, fill func(dir string) error) (string, error) {
	dir, stamp := s.path(name), s.path(name+".key")
	if was, err := os.ReadFile(stamp); err == nil && string(was) == key {
		return dir, nil
	}
	err := errors.Join(remove(stamp), os.RemoveAll(dir), os.MkdirAll(dir, 0o755))
	if err != nil {
		return "", err
	}
	if err := fill(dir); err != nil {
		return "", fmt.Errorf("%w: making %s: %w", ErrSetup, name, err)
	}
	return dir, os.WriteFile(stamp, []byte(key), 0o644)
}

// remove deletes a file that need not be there.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
