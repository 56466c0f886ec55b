//go:build linux

package lab

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unarchive reads the format back.
func unarchive(t *testing.T, b []byte) (names []string, files map[string]entry) {
	t.Helper()
	files = make(map[string]entry)
	pad := func(n int) int { return (n + 3) &^ 3 }
	for at := 0; ; {
		head := string(b[at : at+110])
		require.Equal(t, "070701", head[:6])
		number := func(i int) int {
			n, err := strconv.ParseUint(head[6+8*i:14+8*i], 16, 32)
			require.NoError(t, err)
			return int(n)
		}
		mode, size, nameLen := number(1), number(6), number(11)
		name := string(b[at+110 : at+110+nameLen-1])
		require.Zero(t, b[at+110+nameLen-1])
		at += pad(110 + nameLen)
		if name == "TRAILER!!!" {
			require.Len(t, b, at)
			return names, files
		}
		names = append(names, name)
		files[name] = entry{uint32(mode), b[at : at+size]}
		at += pad(size)
	}
}

func TestArchive(t *testing.T) {
	a := newArchive()
	a.add("/usr/bin/tool", modeProgram, []byte("12345"))
	a.add("etc/x", modeFile, nil)
	a.add("lib/l", modeLink, []byte("../target"))
	a.folder("tmp")
	var b bytes.Buffer
	require.NoError(t, a.write(&b))
	names, files := unarchive(t, b.Bytes())
	require.Equal(t, []string{"etc", "etc/x", "lib", "lib/l", "tmp", "usr", "usr/bin", "usr/bin/tool"}, names)
	require.Equal(t, "12345", string(files["usr/bin/tool"].data))
	require.EqualValues(t, modeProgram, files["usr/bin/tool"].mode)
	require.EqualValues(t, modeFolder, files["usr/bin"].mode)
	require.Equal(t, "../target", string(files["lib/l"].data))
	require.ErrorIs(t, a.write(full{}), errFull)
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestOnce(t *testing.T) {
	s := &store{dir: t.TempDir(), log: io.Discard}
	made := 0
	fill := func(dir string) error {
		made++
		return os.WriteFile(filepath.Join(dir, "x"), nil, 0o600)
	}
	for _, key := range []string{"a", "a", "b", "b"} {
		dir, err := s.once("thing", key, fill)
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(dir, "x"))
	}
	require.Equal(t, 2, made)

	broken := errors.New("broken")
	_, err := s.once("thing", "c", func(string) error { return broken })
	require.ErrorIs(t, err, ErrSetup)
	require.ErrorIs(t, err, broken)
	_, err = s.once("thing", "b", fill)
	require.NoError(t, err)
	require.Equal(t, 3, made, "what failed half way is not used again")
}

func TestDebVersion(t *testing.T) {
	name, version := debVersion("/x/libcap2_1%3a2.66-4+deb12u3_amd64.deb")
	require.Equal(t, "libcap2", name)
	require.Equal(t, "1:2.66-4+deb12u3", version)
}

func TestModuleRoot(t *testing.T) {
	root, err := moduleRoot()
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "interop", "lab", "doc.go"))
	t.Chdir(t.TempDir())
	_, err = moduleRoot()
	require.ErrorIs(t, err, ErrSetup)
}

// The kernel inside the head that boot loaders need.
func TestDecompress(t *testing.T) {
	dir := t.TempDir()
	kernel := append([]byte("\x7fELF"), bytes.Repeat([]byte("kernel"), 1000)...)
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, kernel, 0o600))
	packed, err := run(t.Context(), "", "xz", "-c", plain)
	if err != nil {
		t.Skip("no xz: apt-get install xz-utils")
	}
	const sectors = 9
	b := make([]byte, (sectors+1)*bzSector+100)
	b[bzSetupSectors] = sectors
	binary.LittleEndian.PutUint32(b[bzPayloadOffset:], 100)
	binary.LittleEndian.PutUint32(b[bzPayloadLength:], uint32(len(packed)+4))
	b = append(append(b, packed...), "size and other things"...)
	from, to := filepath.Join(dir, "vmlinuz"), filepath.Join(dir, "vmlinux")
	require.NoError(t, os.WriteFile(from, b, 0o600))
	require.NoError(t, decompress(t.Context(), from, to))
	got, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, kernel, got)

	for _, broken := range [][]byte{nil, make([]byte, 0x2000), bytes.Repeat([]byte{0xff}, 0x2000)} {
		require.NoError(t, os.WriteFile(from, broken, 0o600))
		require.ErrorIs(t, decompress(t.Context(), from, to), ErrSetup)
	}
}

func TestEmbeddedFiles(t *testing.T) {
	config, err := umlFiles.ReadFile("uml/config")
	require.NoError(t, err)
	require.Contains(t, string(config), "CONFIG_RDMA_RXE=y\n")
	for _, name := range guestTools {
		_, err := guestFiles.ReadFile("guest/" + name + ".c")
		require.NoError(t, err)
	}
	script, err := guestFiles.ReadFile("guest/init")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(script), "#!/bin/busybox sh\n"))
	for _, p := range (&Guest{lab: &Lab{Image: &Image{}}}).parameters("eth0") {
		name, _, _ := strings.Cut(p, "=")
		if word, ours := strings.CutPrefix(name, "lab."); ours {
			require.Contains(t, string(script), "$lab_"+word, "init uses %s", name)
		}
	}
}

func TestRefusals(t *testing.T) {
	_, err := Prepare(context.Background(), "vmware", io.Discard)
	require.ErrorIs(t, err, ErrSetup)
	require.ErrorContains(t, err, `"vmware"; there are uml and qemu`)
	_, err = Boot(context.Background(), &Image{Initramfs: filepath.Join(t.TempDir(), "x")}, Options{})
	require.ErrorIs(t, err, ErrBoot)
	require.False(t, Inside())
	for _, o := range []Options{{}, {Dir: "x", Guests: -1}, {Dir: "x", Guests: MaxGuests + 1}, {Dir: "x", MTU: 100}, {Dir: "x", MTU: 100000}} {
		require.ErrorIs(t, o.limits(), ErrBoot)
	}
}

func TestClaim(t *testing.T) {
	img := &Image{Initramfs: filepath.Join(t.TempDir(), "initramfs")}
	one, err := img.Claim()
	require.NoError(t, err)
	two, err := img.Claim()
	require.NoError(t, err)
	require.NotEqual(t, one, two, "nobody is thrown out")
	require.DirExists(t, one)
	for range maxRuns - 2 {
		_, err = img.Claim()
		require.NoError(t, err)
	}
	_, err = img.Claim()
	require.ErrorIs(t, err, ErrSetup)
}

func TestLastLines(t *testing.T) {
	require.Equal(t, "b\nc", lastLines("a\nb\nc\n", 2))
	require.Equal(t, "a", lastLines("a", 9))
}
