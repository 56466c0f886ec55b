//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Backend is what runs the guests.
type Backend string

const (
	// UML is user-mode Linux: a kernel as a process, at native speed, one
	// processor a guest. It is built once, which takes minutes.
	UML Backend = "uml"
	// QEMU emulates a machine with Debian's own kernel: slow, but nothing in it is
	// built for the lab, and it is ready in seconds.
	QEMU Backend = "qemu"
)

// Image is what guests boot from.
type Image struct {
	Backend   Backend
	Kernel    string            // file
	Initramfs string            // file
	Release   string            // of the kernel
	Packages  map[string]string // versions of what is in the guests
}

// Prepare makes an image. Whatever is missing on this machine is installed from
// Debian's packages; what was made before is used again. It says what it does on
// log.
func Prepare(ctx context.Context, b Backend, log io.Writer) (*Image, error) {
	if b != UML && b != QEMU {
		return nil, fmt.Errorf("%w: backend %q; there are %s and %s", ErrSetup, b, UML, QEMU)
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: it needs root", ErrSetup)
	}
	s, err := openStore(log)
	if err != nil {
		return nil, err
	}
	var img *Image
	err = s.exclusively(func() error {
		img, err = s.prepare(ctx, b)
		return err
	})
	return img, err
}

func (s *store) prepare(ctx context.Context, b Backend) (*Image, error) {
	host := hostPackages
	if b == QEMU {
		host = append(append([]string(nil), host...), emulator...)
	}
	if err := s.install(ctx, host); err != nil {
		return nil, err
	}
	tree, files, err := s.guestTree(ctx)
	if err != nil {
		return nil, err
	}
	root, err := s.guestRoot(ctx, tree)
	if err != nil {
		return nil, err
	}
	img := &Image{Backend: b, Initramfs: s.path("initramfs-" + string(b)), Packages: make(map[string]string)}
	for _, f := range files {
		name, version := debVersion(f)
		img.Packages[name] = version
	}
	if err := img.addKernel(ctx, s, root); err != nil {
		return nil, err
	}
	return img, img.save(s, root)
}

func (i *Image) addKernel(ctx context.Context, s *store, root *archive) error {
	if i.Backend == UML {
		dir, release, err := s.umlKernel(ctx)
		i.Kernel, i.Release = filepath.Join(dir, "linux"), release
		return err
	}
	dir, release, err := s.debianKernel(ctx)
	if err != nil {
		return err
	}
	i.Kernel, i.Release = filepath.Join(dir, "vmlinux"), release
	return root.addModules(ctx, dir, debianModules...)
}

// save writes the image's files.
func (i *Image) save(s *store, root *archive) error {
	// Another run may be booting from the old one.
	f, err := os.Create(i.Initramfs + ".new")
	if err != nil {
		return err
	}
	if err := errors.Join(root.write(f), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), i.Initramfs); err != nil {
		return err
	}
	b, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(s.path("image-"+string(i.Backend)+".json"), b, 0o644)
}

// Load returns the image that Prepare made.
func Load(b Backend) (*Image, error) {
	s, err := openStore(io.Discard)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(s.path("image-" + string(b) + ".json"))
	if err != nil {
		return nil, fmt.Errorf("%w: the image was not prepared: %w", ErrSetup, err)
	}
	i := new(Image)
	return i, json.Unmarshal(text, i)
}
