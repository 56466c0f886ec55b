package bench

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUpdateSection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.md")
	put := func(s string) { require.NoError(t, os.WriteFile(file, []byte(s), 0o600)) }
	get := func() string {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(b)
	}
	say := func(s string) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, s)
			return err
		}
	}
	const doc = "before\n<!-- a: begin -->\nold\n<!-- a: end -->\nbetween\n<!-- b: begin -->\n<!-- b: end -->\n"
	put(doc)
	require.NoError(t, UpdateSection(file, "a", say("new\nlines\n")))
	require.NoError(t, UpdateSection(file, "b", say("x\n")))
	const want = "before\n<!-- a: begin -->\nnew\nlines\n<!-- a: end -->\nbetween\n<!-- b: begin -->\nx\n<!-- b: end -->\n"
	require.Equal(t, want, get())

	require.NoError(t, CheckSection(file, "b"))
	for _, f := range []func() error{
		func() error { return UpdateSection(file, "c", say("")) },
		func() error { return CheckSection(file, "c") },
	} {
		require.ErrorContains(t, f(), `no section "c"`)
	}
	why := errors.New("enough")
	require.ErrorIs(t, UpdateSection(file, "a", func(io.Writer) error { return why }), why)
	require.Equal(t, want, get(), "a failure changes nothing")
	require.ErrorIs(t, UpdateSection(file+"x", "a", say("")), os.ErrNotExist)
	require.ErrorIs(t, CheckSection(file+"x", "a"), os.ErrNotExist)
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is left behind")
}

// Whoever reads a file while it is written, or after a failure, finds the old one.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	get := func() string {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(b)
	}
	require.NoError(t, CheckFile(file))
	require.NoFileExists(t, file)
	write := func(s string, fail error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, s)
			return errors.Join(err, fail)
		}
	}
	require.NoError(t, ReplaceFile(file, write("first", nil)))
	require.NoError(t, os.Chmod(file, 0o600))
	require.NoError(t, ReplaceFile(file, func(w io.Writer) error {
		require.NoError(t, write("second", nil)(w))
		require.Equal(t, "first", get())
		return nil
	}))
	require.Equal(t, "second", get())
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "who may read it stays")

	why := errors.New("enough")
	require.ErrorIs(t, ReplaceFile(file, write("half", why)), why)
	require.NoError(t, CheckFile(file))
	require.Equal(t, "second", get())

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, ReplaceFile(link, write("third", nil)))
	require.Equal(t, "third", get())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2, "nothing is left behind")

	require.NoError(t, ReplaceFile(os.DevNull, write("gone", nil)))
	require.NoError(t, CheckFile(os.DevNull))
	for _, f := range []func(string) error{CheckFile, func(name string) error { return ReplaceFile(name, write("", nil)) }} {
		require.ErrorContains(t, f(dir), "is a directory")
		err := f(filepath.Join(dir, "no", "where"))
		require.ErrorIs(t, err, os.ErrNotExist)
		require.ErrorContains(t, err, filepath.Join(dir, "no")+": ")
	}
}
