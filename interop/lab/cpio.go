//go:build linux

package lab

import (
	"bufio"
	"fmt"
	"io"
	"sort"
	"strings"
)

// archive collects the files of an initial RAM file system, by path without a
// leading slash. Folders come with what is in them.
type archive struct{ files map[string]entry }

type entry struct {
	mode uint32
	data []byte // a link's target
}

// File types and permissions in a mode.
const (
	modeFolder  = 0o040755
	modeFile    = 0o100644
	modeProgram = 0o100755
	modeLink    = 0o120777
)

func newArchive() *archive { return &archive{files: make(map[string]entry)} }

func (a *archive) add(path string, mode uint32, data []byte) {
	path = strings.TrimPrefix(path, "/")
	for i, c := range path {
		if c == '/' {
			a.files[path[:i]] = entry{mode: modeFolder}
		}
	}
	a.files[path] = entry{mode, data}
}

func (a *archive) folder(path string) { a.add(path, modeFolder, nil) }

// write writes the archive in the format that the kernel unpacks ("newc").
func (a *archive) write(w io.Writer) error {
	names := make([]string, 0, len(a.files))
	for n := range a.files {
		names = append(names, n)
	}
	sort.Strings(names) // folders before what is in them
	out := &padded{w: bufio.NewWriterSize(w, 1<<20)}
	for i, n := range names {
		out.member(i+1, n, a.files[n])
	}
	out.member(0, "TRAILER!!!", entry{})
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// padded writes members, each part filled up to four bytes.
type padded struct {
	w   *bufio.Writer
	err error
}

func (p *padded) member(inode int, name string, e entry) {
	head := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		inode, e.mode, 0, 0, 1, 0, len(e.data), 0, 0, 0, 0, len(name)+1, 0)
	p.part([]byte(head + name + "\x00"))
	p.part(e.data)
}

func (p *padded) part(b []byte) {
	if p.err != nil {
		return
	}
	if _, p.err = p.w.Write(b); p.err == nil && len(b)%4 != 0 {
		_, p.err = p.w.Write(make([]byte, 4-len(b)%4))
	}
}
