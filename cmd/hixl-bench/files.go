package main

import (
	"io"

	"github.com/gohixl/hixl/bench"
)

// Files that results are written to may have no name, and then are none. Each is
// looked at before anything is measured.

func checkFile(name string) error {
	if name == "" {
		return nil
	}
	return bench.CheckFile(name)
}

func writeFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	return bench.ReplaceFile(name, write)
}

func checkSection(file, name string) error {
	if file == "" {
		return nil
	}
	return bench.CheckSection(file, name)
}

func updateSection(file, name string, write func(io.Writer) error) error {
	if file == "" {
		return nil
	}
	return bench.UpdateSection(file, name, write)
}
