//go:build !unix

package hosttest

import "testing"

// takeTurn does nothing where a file cannot be locked: run one package at a time.
func takeTurn(testing.TB, string) {}
