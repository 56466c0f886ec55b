// Command hixl is the tool beside the library: it decodes captures and tells
// what a host offers.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
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
	fmt.Fprintf(stderr, "hixl: %v\n", err)
	return exitError
}

// statusError ends the program with an exit code after all has been said.
type statusError struct{ code int }

func (e *statusError) Error() string { return fmt.Sprintf("exit status %d", e.code) }
