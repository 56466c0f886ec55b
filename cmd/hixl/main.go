// Command hixl is the tool beside the library: it decodes captures, tells what a
// host offers, and is the counterpart of the stock RDMA tools, to run against them
// or against itself.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gohixl/hixl/internal/tools"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// Exit codes.
const (
	exitOK    = 0
	exitBad   = 1 // the command ran and found something wrong
	exitError = 2 // the command could not do what it was asked to
)

// run executes the command line and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	var status *statusError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &status):
		return status.code
	}
	_, _ = fmt.Fprintf(stderr, "hixl: %s\n", strings.TrimPrefix(err.Error(), "hixl: "))
	if errors.Is(err, tools.ErrData) {
		return exitBad
	}
	return exitError
}

// statusError ends the program with an exit code after all has been said.
type statusError struct{ code int }

func (e *statusError) Error() string { return fmt.Sprintf("exit status %d", e.code) }
