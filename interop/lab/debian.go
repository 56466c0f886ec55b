//go:build linux

package lab

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// debianModules are what a guest of the emulator loads, with what they need.
var debianModules = []string{
	"virtio_pci", "virtio_net", "virtio_rng", "crc32_generic", "rdma_rxe", "ib_uverbs", "rdma_ucm", "ib_umad", "veth",
}

// modulePlaces are the folders of the kernel package in which they are.
var modulePlaces = []string{"arch", "crypto", "drivers/char", "drivers/infiniband", "drivers/net", "drivers/virtio", "fs", "lib", "net"}

// debianKernel unpacks Debian's kernel and returns its folder and release.
func (s *store) debianKernel(ctx context.Context) (dir, release string, err error) {
	release, err = s.debianRelease(ctx)
	if err != nil {
		return "", "", err
	}
	dir, err = s.once("kernel-"+release, strings.Join(modulePlaces, " "), func(dir string) error {
		files, err := s.download(ctx, "linux-image-"+release)
		if err != nil {
			return err
		}
		s.say("unpacking kernel %s", release)
		if err := extract(ctx, files[0], dir, release); err != nil {
			return err
		}
		return decompress(ctx, filepath.Join(dir, "vmlinuz"), filepath.Join(dir, "vmlinux"))
	})
	return dir, release, err
}

// debianRelease is the release of a kernel that is there, or else of the one that
// Debian's kernel package stands for.
func (s *store) debianRelease(ctx context.Context) (string, error) {
	have, _ := filepath.Glob(s.path("kernel-*.key")) // the pattern is well formed
	if len(have) > 0 {
		return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(have[len(have)-1]), "kernel-"), ".key"), nil
	}
	release, err := kernelRelease(ctx)
	if err == nil && release == "" {
		if err = s.insist(ctx, func() error { return apt(ctx, "", "update") }); err == nil {
			release, err = kernelRelease(ctx)
		}
	}
	if err == nil && release == "" {
		err = fmt.Errorf("%w: no kernel stands behind package %s", ErrSetup, kernelPackage)
	}
	return release, err
}

func kernelRelease(ctx context.Context) (string, error) {
	out, err := run(ctx, "", "apt-cache", "depends", kernelPackage)
	if err != nil {
		return "", err
	}
	for word := range strings.FieldsSeq(out) {
		if release, ok := strings.CutPrefix(word, "linux-image-"); ok && release != "" && release[0] >= '0' && release[0] <= '9' {
			return release, nil
		}
	}
	return "", nil
}

// extract takes the kernel and the modules that may be needed out of a package.
func extract(ctx context.Context, deb, dir, release string) error {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = extractTar(pipe, dir, release)
	_, _ = io.Copy(io.Discard, pipe) // or it cannot end
	return errors.Join(err, cmd.Wait())
}

func extractTar(r io.Reader, dir, release string) error {
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Clean(h.Name)
		to, wanted := "", false
		switch rest, module := strings.CutPrefix(name, "lib/modules/"+release+"/"); {
		case name == "boot/vmlinuz-"+release:
			to, wanted = "vmlinuz", true
		case module && rest == "modules.builtin":
			to, wanted = rest, true
		case module && strings.Contains(path.Base(rest), ".ko"):
			rest = strings.TrimPrefix(rest, "kernel/")
			to = path.Join("modules", path.Base(rest))
			wanted = slices.ContainsFunc(modulePlaces, func(p string) bool { return strings.HasPrefix(rest, p+"/") })
		}
		if !wanted {
			continue
		}
		b, err := io.ReadAll(t)
		if err != nil {
			return err
		}
		to = filepath.Join(dir, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, b, 0o644); err != nil {
			return err
		}
	}
}

// Offsets in the head of a compressed x86 kernel (Documentation/arch/x86/boot.rst).
const (
	bzSetupSectors  = 0x1f1 // minus one, of 512 bytes
	bzPayloadOffset = 0x248 // after them
	bzPayloadLength = 0x24c // the last four bytes are the size unpacked
	bzSector        = 512
)

// decompress takes the kernel out of what boot loaders load, which saves an
// emulated processor seconds.
func decompress(ctx context.Context, from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if len(b) < 0x1000 {
		return fmt.Errorf("%w: %s is no kernel", ErrSetup, from)
	}
	start := int(binary.LittleEndian.Uint32(b[bzPayloadOffset:])) + (int(b[bzSetupSectors])+1)*bzSector
	end := start + int(binary.LittleEndian.Uint32(b[bzPayloadLength:])) - 4
	if start < 0 || end > len(b) || start >= end {
		return fmt.Errorf("%w: %s has no compressed kernel", ErrSetup, from)
	}
	tool := "xz"
	if bytes.HasPrefix(b[start:], []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		tool = "zstd"
	}
	cmd := exec.CommandContext(ctx, tool, "-dcq")
	cmd.Stdin = bytes.NewReader(b[start:end])
	kernel, err := cmd.Output()
	if err != nil || !bytes.HasPrefix(kernel, []byte("\x7fELF")) {
		return fmt.Errorf("%w: %s does not unpack with %s: %w", ErrSetup, from, tool, err)
	}
	return os.WriteFile(to, kernel, 0o644)
}

// addModules adds kernel modules with all that they need, and the order in which
// to load them. Those built into the kernel are left out.
func (a *archive) addModules(ctx context.Context, kernel string, names ...string) error {
	builtin, err := os.ReadFile(filepath.Join(kernel, "modules.builtin"))
	if err != nil {
		return err
	}
	var order []string
	var visit func(name string) error
	visit = func(name string) error {
		name = strings.ReplaceAll(name, "-", "_")
		if slices.Contains(order, name+".ko") || strings.Contains(strings.ReplaceAll(string(builtin), "-", "_"), "/"+name+".ko") {
			return nil
		}
		file, err := moduleFile(ctx, kernel, name)
		if err != nil {
			return err
		}
		needs, err := moduleInfo(file, "depends")
		if err != nil {
			return err
		}
		for _, n := range needs {
			if err := visit(n); err != nil {
				return err
			}
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		a.add("modules/"+name+".ko", modeFile, b)
		order = append(order, name+".ko")
		return nil
	}
	for _, n := range names {
		if err := visit(n); err != nil {
			return err
		}
	}
	a.add("modules/order", modeFile, []byte(strings.Join(order, "\n")+"\n"))
	return nil
}

// moduleFile returns a module stripped of what only debuggers want and of its
// signature, which takes an emulated processor long to check.
func moduleFile(ctx context.Context, kernel, name string) (string, error) {
	ready := filepath.Join(kernel, "ready", name+".ko")
	if _, err := os.Stat(ready); err == nil {
		return ready, nil
	}
	pattern := filepath.Join(kernel, "modules", strings.ReplaceAll(name, "_", `[_\-]`)+".ko*")
	found, _ := filepath.Glob(pattern) // the pattern is well formed
	if len(found) == 0 {
		return "", fmt.Errorf("%w: the kernel has no module %s", ErrSetup, name)
	}
	if err := os.MkdirAll(filepath.Dir(ready), 0o755); err != nil {
		return "", err
	}
	file := found[0]
	if strings.HasSuffix(file, ".xz") {
		if _, err := run(ctx, "", "xz", "-dkf", file); err != nil {
			return "", err
		}
		file = strings.TrimSuffix(file, ".xz")
	}
	_, err := run(ctx, "", "strip", "--strip-debug", "-o", ready, file)
	return ready, err
}
