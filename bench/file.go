package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ReplaceFile writes a file by a function: all of it, or what was there stays. What is
// no regular file, such as /dev/stdout, is written to as it is.
func ReplaceFile(name string, write func(io.Writer) error) error {
	t, err := replacing(name)
	if err != nil {
		return err
	}
	if err := write(t.out); err != nil {
		return errors.Join(err, t.drop())
	}
	return t.keep()
}

// CheckFile says why [ReplaceFile] could not write a file, so that a long run need not
// end with that.
func CheckFile(name string) error {
	t, err := replacing(name)
	if err != nil {
		return err
	}
	return t.drop()
}

// replacement is a file that is to take another's place.
type replacement struct {
	out  *os.File
	name string // of the other one; "" when out is it
}

// replacing makes the new file beside the old one, so that it can be renamed.
func replacing(name string) (*replacement, error) {
	mode := os.FileMode(0o644)
	switch old, err := os.Stat(name); {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return nil, writing(err)
	case err == nil && old.IsDir():
		return nil, writing(fmt.Errorf("%s is a directory", name))
	case err == nil && !old.Mode().IsRegular():
		out, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &replacement{out: out}, writing(err)
	case err == nil:
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return nil, writing(err)
		}
		mode = old.Mode().Perm()
	}
	out, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		if e := (*os.PathError)(nil); errors.As(err, &e) {
			e.Path = filepath.Dir(name) // which is to blame
		}
		return nil, writing(err)
	}
	t := &replacement{out, name}
	if err := out.Chmod(mode); err != nil {
		return nil, errors.Join(writing(err), t.drop())
	}
	return t, nil
}

// keep puts the new file in the old one's place.
func (t *replacement) keep() error {
	if err := t.out.Close(); err != nil {
		return errors.Join(writing(err), t.remove())
	}
	if t.name == "" {
		return nil
	}
	if err := os.Rename(t.out.Name(), t.name); err != nil {
		return errors.Join(writing(err), t.remove())
	}
	return nil
}

// drop leaves the old file as it is.
func (t *replacement) drop() error { return errors.Join(writing(t.out.Close()), t.remove()) }

func (t *replacement) remove() error {
	if t.name == "" {
		return nil
	}
	return writing(os.Remove(t.out.Name()))
}

func writing(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("bench: writing results: %w", err)
}

// section is a part of a document between two lines.
type section struct{ before, after []byte }

// findSection finds what stands in a file between the lines "<!-- name: begin -->" and
// "<!-- name: end -->".
func findSection(file, name string) (*section, error) {
	old, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("bench: updating results: %w", err)
	}
	begin, end := []byte("<!-- "+name+": begin -->\n"), []byte("<!-- "+name+": end -->")
	from, to := bytes.Index(old, begin), bytes.Index(old, end)
	if from < 0 || to < from {
		return nil, fmt.Errorf("bench: updating results: %s has no section %q between its begin and end comments", file, name)
	}
	return &section{old[:from+len(begin)], old[to:]}, nil
}

// CheckSection says why [UpdateSection] could not update a file, so that a long run
// need not end with that.
func CheckSection(file, name string) error {
	if _, err := findSection(file, name); err != nil {
		return err
	}
	return CheckFile(file)
}

// UpdateSection replaces what stands in a file between the lines
// "<!-- name: begin -->" and "<!-- name: end -->" by what write writes. The file is
// whole at any time.
func UpdateSection(file, name string, write func(io.Writer) error) error {
	s, err := findSection(file, name)
	if err != nil {
		return err
	}
	return ReplaceFile(file, func(w io.Writer) error {
		_, err := w.Write(s.before)
		if err == nil {
			err = write(w)
		}
		if err == nil {
			_, err = w.Write(s.after)
		}
		return err
	})
}
